// SPDX-License-Identifier: Apache-2.0
// Measured times and fitted distributions.
#include "tools/sim/plots/fit_plot.hpp"

#include "actors/recording/csv.hpp"
#include "simulation/reports/run_profile.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

using csv::field;

constexpr size_t shown_fits = 2;
constexpr size_t legend_max = 44; // letters

std::string legend_of(const std::string& expression) {
  if (expression.size() <= legend_max) return expression;
  return fmt::format("{}...", expression.substr(0, legend_max - 3));
}

std::string fit_curves(const trace_fit& fit, const time_unit& unit, bool titles) {
  constexpr const char* colours[] = {"#d1410c", "#d9a521"};
  auto curve = [&](size_t column, std::string_view look, const std::string& title) {
    return fmt::format("\"fit.csv\" skip 1 using ({} * $1):(100 * ${}) with {} {}", unit.per_second,
                       column, look,
                       titles ? "title " + gnuplot_text(title) : std::string{"notitle"});
  };
  auto text = "plot " + curve(2, "steps lw 3 lc rgb \"#6fa8dc\"", "measured");
  for (size_t i = 0; i < std::min(shown_fits, fit.families.size()); ++i)
    text += ", \\\n     "
            + curve(3 + i, fmt::format("lines lw 1.5 dt {} lc rgb \"{}\"", i + 1, colours[i]),
                    legend_of(fit.families[i].expression));
  return text + "\n";
}

} // namespace

sim_plot fit_plot(const std::string& trace, const trace_fit& fit) {
  auto shown = std::min(shown_fits, fit.families.size());
  auto points = distribution_of(fit.usual);
  std::string table = "seconds,measured_share";
  for (size_t i = 0; i < shown; ++i)
    table += "," + field(fit.families[i].expression);
  table += '\n';
  for (auto [share, seconds] : points) {
    table += field(seconds) + "," + field(share);
    for (size_t i = 0; i < shown; ++i)
      table += "," + field(fit.families[i].cumulative(seconds));
    table += '\n';
  }
  auto shortest = points.front().seconds;
  auto longest = points.back().seconds;
  if (shortest == longest)
    return {.name = "fit", .why_not = fmt::format("all usual times are {} s", shortest)};
  auto tenth = *std::ranges::find_if(points, [](const auto& point) { return point.share >= 0.9; });
  auto end = std::min(longest, shortest + 1.3 * (tenth.seconds - shortest));
  if (tenth.seconds == 0) end = longest; // most take no time, which no logarithm shows
  auto unit = unit_for(end);
  auto script = plot_beginning(
    {.name = "fit",
     .title = "Share of usual times that are no longer",
     .caption = fmt::format("{},  {} times,  {} slow replica{},  {} slow period{}", trace,
                            fit.usual.size(), fit.slow.size(), fit.slow.size() == 1 ? "" : "s",
                            fit.of_all.list.size() + fit.of_one.list.size(),
                            fit.of_all.list.size() + fit.of_one.list.size() == 1 ? "" : "s")});
  script
    += fmt::format(R"gnuplot(
set multiplot
set rmargin at screen 0.6
set xlabel "time of a gradient, {0}"
set ylabel "share of times, %" offset 1.2,0
set xrange [{1:.6g}:{2:.6g}]
set yrange [0:100]
set key at screen 0.625, screen 0.855 left top Left reverse samplen 1.2 spacing 1.3 font ",10"
)gnuplot",
                   unit.name, unit.per_second * std::max(0.0, shortest - 0.05 * (end - shortest)),
                   unit.per_second * end);
  script += fit_curves(fit, unit, true);
  if (tenth.seconds == 0) return {"fit", table, script + "unset multiplot\n"};
  auto low = unit.per_second * tenth.seconds;
  auto high = unit.per_second * 1.1 * longest;
  script += fmt::format(R"gnuplot(
unset label
unset key
set lmargin at screen 0.68
set rmargin at screen 0.97
set bmargin at screen 0.1286
set tmargin at screen 0.55
set label "The longest tenth, %" at graph 0, graph 1.08 left font ",11" textcolor rgb "#444444"
set tics font ",10"
set logscale x
unset xlabel
unset ylabel
set xrange [{0:.6g}:{1:.6g}]
set yrange [90:100]
set ytics 90,5,100
set xtics ({2})
)gnuplot",
                        low, high, logarithmic_tics(low, high));
  return {"fit", table, script + fit_curves(fit, unit, false) + "unset multiplot\n"};
}

} // namespace troupe
