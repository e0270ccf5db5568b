// SPDX-License-Identifier: Apache-2.0
// The plot of the loss by virtual time.
#include "actors/recording/csv.hpp"
#include "tools/sim/plots/plot_list.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

using csv::field;

bool has_learnt(const sim_row& row) {
  return row.report.learnt && row.report.learnt->curve.size() > 1;
}

std::string loss_table(const sim_command& command, const sim_rows& rows) {
  auto text = fmt::format("row,{},step,seconds,loss,loss_of_slow,loss_of_fast\n",
                          field(row_column(command)));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!has_learnt(rows[i])) continue;
    for (const auto& point : rows[i].report.learnt->curve) {
      text += csv::line({std::to_string(i), name_field(row_name(command, rows[i])),
                         std::to_string(point.step), field(point.seconds), field(point.loss),
                         field(point.slow_loss), field(point.fast_loss)});
    }
  }
  return text;
}

/// A line of the picture.
struct loss_line {
  size_t row = 0;
  int column = 5; ///< Its column of loss.csv.
  std::string colour;
  std::string title;
};

// A single run also shows the losses of the data of slow replicas, and of the others.
std::vector<loss_line> lines_of(const sim_command& command, const sim_rows& rows) {
  std::vector<size_t> learnt;
  for (size_t i = 0; i < rows.size(); ++i)
    if (has_learnt(rows[i])) learnt.push_back(i);
  std::vector<loss_line> lines;
  auto shown = shown_rows(learnt.size());
  for (size_t i = 0; i < shown.size(); ++i)
    lines.push_back({learnt[shown[i]], 5, line_colour(i, shown.size()),
                     rows.size() == 1 ? "all data" : line_name(command, rows[learnt[shown[i]]])});
  if (rows.size() != 1 || std::isnan(rows[0].report.learnt->curve.front().slow_loss)) return lines;
  lines.push_back({0, 6, "#e0810b", "data of slow replicas"});
  lines.push_back({0, 7, "#2aa187", "data of the others"});
  return lines;
}

} // namespace

sim_plot loss_plot(const sim_command& command, const sim_rows& rows) {
  if (std::ranges::none_of(rows, has_learnt))
    return {.name = "loss", .why_not = "nothing was learnt: --train"};
  auto lines = lines_of(command, rows);
  double end = 0;
  for (const auto& line : lines)
    end = std::max(end, rows[line.row].report.learnt->curve.back().seconds);
  if (end == 0) return {.name = "loss", .why_not = no_time};
  auto unit = unit_for(end);
  const auto& first = rows[lines.front().row];
  auto script = plot_beginning(
    {.name = "loss", .title = "Loss by virtual time", .caption = caption_of(command, rows)});
  script += fmt::format(R"gnuplot(
set rmargin at screen 0.97
set xlabel "time, {}"
set ylabel "loss" offset 1.2,0
set xrange [0:*]
set key at screen 0.97, screen 0.83 right top Right samplen 1.5 spacing 1.15 opaque
)gnuplot",
                        unit.name);
  if (auto target = first.experiment.target_loss; std::isfinite(target)) {
    script
      += fmt::format("set arrow from graph 0, first {0} to graph 1, first {0} nohead lw 1 dt 2 lc "
                     "rgb \"#d1410c\" back\n"
                     "set label \"target {0}\" at graph 0.99, first {0} right offset 0,0.6 "
                     "textcolor rgb \"#d1410c\"\n",
                     target);
  }
  std::string plots;
  for (const auto& [row, column, colour, title] : lines) {
    plots
      += fmt::format("{}\"loss.csv\" skip 1 using ($1 == {} ? {} * $4 : NaN):{} with lines lw 2 "
                     "lc rgb \"{}\" title {}",
                     plots.empty() ? "plot " : ", \\\n     ", row, unit.per_second, column, colour,
                     gnuplot_text(title));
  }
  return {"loss", loss_table(command, rows), script + plots + "\n"};
}

} // namespace troupe
