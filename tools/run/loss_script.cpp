// SPDX-License-Identifier: Apache-2.0
// Writes the gnuplot script of loss.svg.
#include "tools/run/plots.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

constexpr std::string_view beginning
  = R"gnuplot(# Draws loss.svg from metrics.csv and evaluations.csv:  gnuplot loss.gp
reset session
)gnuplot";

std::string names(const quality_measure& measure) {
  return fmt::format("measure = \"{}\"\n"
                     "held_out_text = \"{}\"\n"
                     "title_text = \"{}\"\n"
                     "axis_text = \"{}\"\n"
                     "least_top = {}\n"
                     "shown(loss) = loss / {}\n",
                     measure.column, measure.held_out, measure.plot_title, measure.plot_axis,
                     measure.plot_top, measure.nats);
}

constexpr std::string_view preparation
  = R"gnuplot(set terminal svg size 960,560 dynamic enhanced font "DejaVu Sans,14" background "#ffffff"
set output "loss.svg"
set datafile separator ","
set datafile columnheaders

# Losses and evaluations may be missing, steps are there.
highest = least_top
seen(loss) = (highest = loss > highest ? loss : highest)
stats "metrics.csv" using (seen(shown(column("loss"))), column("step")) nooutput
last_step = STATS_max
held_out = NaN
note(value) = (held_out = value, highest = value > highest ? value : highest, value)
stats "evaluations.csv" using (note(column(measure))) nooutput
top = highest > 0 ? 1.04 * highest : 1
# Steps are averaged in at most 100 groups.
group = ceil(last_step / 100.0)
middle(step) = (floor((step - 1) / group) + 0.5) * group + 0.5

set title title_text font ",17" offset 0,-0.2
set xlabel "step" offset 0,0.2
set ylabel axis_text offset 0.5,0
set border 3 lc rgb "#888888"
set tics nomirror out textcolor rgb "#444444"
set grid ytics lt 1 lw 1 lc rgb "#e4e4e4"
set lmargin at screen 0.08
set rmargin at screen 0.84
set bmargin at screen 0.22
set tmargin at screen 0.91
set key at screen 0.46,0.06 center horizontal Left reverse samplen 2 width 0 maxrows 1
set xrange [0:last_step]
set yrange [0:top]

# The compressors are named at the right, a line's height apart, from the top down.
y = top
place(value) = (y = value < y - 0.055 * top ? value : y - 0.055 * top)
)gnuplot";

constexpr std::string_view curves = R"gnuplot(
plot "metrics.csv" using "step":(shown(column("loss"))) \
       with lines lw 1 lc rgb "#b5d3ee" title "training", \
     "" using (middle(column("step"))):(shown(column("loss"))) smooth unique \
       with lines lw 3 lc rgb "#0b5394" title group > 1 ? sprintf("mean of %d steps", group) : "each step", \
     "evaluations.csv" using "step":(column(measure)) \
       with linespoints lw 2 pt 7 ps 0.55 lc rgb "#d1410c" title sprintf("%s: %.3g", held_out_text, held_out))gnuplot";

std::string label(const plot_baseline& baseline) {
  return fmt::format("set label \"{}{}: {:.2f}\" at graph 1.015, first place({:.4f}) "
                     "textcolor rgb \"#555555\"\n",
                     baseline.name, baseline.after_training ? "*" : "", baseline.value,
                     baseline.value);
}

std::string line(const plot_baseline& baseline) {
  return fmt::format(", \\\n     {:.4f} with lines lw 1.5 dt {} lc rgb \"#888888\" notitle",
                     baseline.value, baseline.after_training ? 3 : 2);
}

} // namespace

std::string loss_script(const quality_measure& measure, std::vector<plot_baseline> baselines) {
  std::ranges::sort(baselines, std::ranges::greater{}, &plot_baseline::value);
  std::string labels;
  std::string lines;
  for (const auto& baseline : baselines) {
    labels += label(baseline);
    lines += line(baseline);
  }
  if (std::ranges::any_of(baselines, &plot_baseline::after_training))
    labels += "set label \"* after reading the training text\" at screen 0.985, screen 0.025 right "
              "textcolor rgb \"#555555\" font \",11\"\n";
  return fmt::format("{}{}{}{}{}{}\n", beginning, names(measure), preparation, labels, curves,
                     lines);
}

} // namespace troupe
