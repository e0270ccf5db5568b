// SPDX-License-Identifier: Apache-2.0
// The heat map of two swept options: which pair of values brings the model to its goal first.
#include "actors/recording/csv.hpp"
#include "tools/sim/plots/plot_list.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace troupe {

namespace {

using csv::field;

constexpr size_t labelled_cells_max = 240;
constexpr size_t tic_letters_max = 16;

/// The time to the goal in each cell, over that of the best; NaN where a report is not whole.
struct grid_times {
  std::vector<double> relative; ///< In the order of the rows.
  size_t best = 0;
};

expected<grid_times> times_of(const sim_command& command, const sim_rows& rows) {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  grid_times times;
  for (const auto& row : rows) {
    if (!row.report.is_whole()) {
      times.relative.push_back(infinity);
      continue;
    }
    auto goal = goal_of(command, row);
    if (!goal) return tl::unexpected<error>(goal.error());
    times.relative.push_back(goal->seconds);
  }
  auto best = std::ranges::min_element(times.relative);
  times.best = static_cast<size_t>(best - times.relative.begin());
  auto shortest = *best;
  if (shortest == 0)
    return fail(errc::out_of_range,
                takes_no_time(rows) ? no_time
                                    : "the steps of the best row take no time, of which no time is "
                                      "a multiple");
  for (double& time : times.relative)
    time = std::isinf(time) ? std::numeric_limits<double>::quiet_NaN() : time / shortest;
  return times;
}

// The line that names the values of an option along an axis.
std::string named_tics(std::string_view axis, const std::vector<std::string>& values) {
  constexpr size_t tics_max = 20;
  auto every = (values.size() + tics_max - 1) / tics_max;
  std::string tics;
  for (size_t i = 0; i < values.size(); i += every) {
    auto name = gnuplot_text(shortened(values[i], tic_letters_max));
    tics += fmt::format("{}{} {}", tics.empty() ? "" : ", ", name, i);
  }
  return fmt::format("set {}tics ({}) scale 0\n", axis, tics);
}

} // namespace

sim_plot grid_plot(const sim_command& command, const sim_rows& rows) {
  if (command.across.key.empty())
    return {.name = "grid",
            .why_not = "needs two options: --sweep NAME=VALUES --sweep NAME=VALUES"};
  auto times = times_of(command, rows);
  if (!times) return {.name = "grid", .why_not = times.error().message};
  if (std::isnan(times->relative[times->best]))
    return {.name = "grid", .why_not = "no row made all its steps without a restart"};
  auto width = command.across.values.size();
  std::string table
    = fmt::format("column,row,{},{},time_of_best,mean_step_seconds,p99_step_seconds,"
                  "gradients_per_second\n",
                  command.across.key, command.sweep.key);
  double most = 1;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& report = rows[i].report;
    if (times->relative[i] > most) most = times->relative[i];
    table += csv::line({std::to_string(i % width), std::to_string(i / width),
                        name_field(command.across.values[i % width]),
                        name_field(command.sweep.values[i / width]), field(times->relative[i]),
                        field(report.step_time.mean), field(report.step_time.p99),
                        field(report.gradients_per_second())});
  }
  auto script = plot_beginning({.name = "grid",
                                .title = "Time to the goal, that of the best is 1, if steps go as "
                                         + command.iterations.text(),
                                .caption = caption_of(command, rows)});
  script += fmt::format(
    R"gnuplot(
set rmargin at screen 0.88
set lmargin at screen 0.2
set xlabel "{0}"
set ylabel "{1}"
{2}{3}set xrange [-0.5:{4}]
set yrange [{5}:-0.5]
unset key
unset grid
set logscale cb
set cbrange [1:{6:.6g}]
set cbtics ({7})
set palette defined (0 "#2aa187", 0.35 "#f4e3b2", 1 "#d1410c")
set object 1 rectangle from {8}-0.5,{9}-0.5 to {8}+0.5,{9}+0.5 fillstyle empty border lc rgb "#222222" lw 2 front
plot "grid.csv" skip 1 using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):5 with boxxyerror lc palette notitle{10}
)gnuplot",
    command.across.key, command.sweep.key, named_tics("x", command.across.values),
    named_tics("y", command.sweep.values), static_cast<double>(width) - 0.5,
    static_cast<double>(command.sweep.values.size()) - 0.5, std::max(1.01, most),
    logarithmic_tics(1, std::max(1.01, most)), times->best % width, times->best / width,
    rows.size() > labelled_cells_max
      ? ""
      : ", \\\n     \"\" skip 1 using 1:2:(sprintf(\"%.3g\", $5)) with labels "
        "font \",10\" notitle");
  return {"grid", table, script};
}

} // namespace troupe
