// SPDX-License-Identifier: Apache-2.0
// Plots of a sweep: costs and gains of backups, and the time until the model converges.
#include "actors/recording/csv.hpp"
#include "tools/sim/plots/plot_list.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

using csv::field;

// Why the rows cannot stand along one axis; empty if they can.
std::string why_no_axis(const sim_command& command) {
  if (!command.across.key.empty()) return "shows one sweep: leave out the second --sweep";
  auto has_axis = command.sweep.key == "aggregate" || command.sweep.key == "replicas";
  return has_axis ? "" : "needs --sweep aggregate=... or replicas=...";
}

uint32_t backups_of(const sim_row& row) {
  const auto& sync = row.experiment.sync;
  return sync.total_num_replicas - std::min(sync.replicas_to_aggregate, sync.total_num_replicas);
}

constexpr const char* too_few_rows
  = "needs two rows that made all their steps, without a restart and with a fixed N";

// A row in which the number of backups changes from step to step has no place on an axis.
bool is_shown(const sim_row& row) {
  return row.report.is_whole() && !row.experiment.sync.dynamic;
}

// 0 where no interval is known: a bar without length.
double interval_half(const experiment_report& report) {
  auto half = report.half_width();
  return std::isnan(half) ? 0 : half;
}

// Beyond the last value that was tried, there may be a better one.
std::string_view edge_remark(bool is_at_edge) {
  return is_at_edge ? ", at the edge of the sweep" : "";
}

// No step takes fewer than one gradient, or waits for more than all.
bool can_go_on(const sim_rows& rows, double gradients) {
  uint32_t replicas = 0;
  for (const auto& row : rows)
    replicas = std::max(replicas, row.experiment.sync.total_num_replicas);
  return gradients > 1 && gradients < replicas;
}

// ---- backups ----

/// A row in the plot of backups.
struct backup_point {
  const sim_row* row = nullptr;
  uint32_t backups = 0;
  double speed_up = 0; ///< By mean step times, for each replica that is paid for.
  double speed_up_of_median = 0;
};

// The speed-up is t(0) / t(b) * N / (N + b): the work of a replica in a second, compared to that
// without backups. If all rows have the same N + b replicas, N / (N + b) is the share of gradients
// that count.
std::vector<backup_point> backup_points(const sim_rows& rows) {
  std::vector<backup_point> points;
  for (const auto& row : rows)
    if (is_shown(row)) points.push_back({&row, backups_of(row)});
  std::ranges::stable_sort(points, {}, &backup_point::backups);
  if (points.empty()) return points;
  const auto& first = *points.front().row;
  auto share = [](const sim_row& row) {
    return static_cast<double>(row.experiment.sync.replicas_to_aggregate)
           / static_cast<double>(row.experiment.sync.total_num_replicas);
  };
  for (auto& point : points) {
    auto relative_share = share(*point.row) / share(first);
    point.speed_up
      = first.report.step_time.mean / point.row->report.step_time.mean * relative_share;
    point.speed_up_of_median
      = first.profile->step_p50 / point.row->profile->step_p50 * relative_share;
  }
  return points;
}

std::string backup_table(const std::vector<backup_point>& points) {
  std::string text = "backups,aggregate,replicas,p10_seconds,median_seconds,p90_seconds,"
                     "mean_seconds,mean_error_seconds,normalised_speed_up,"
                     "normalised_speed_up_of_median\n";
  for (const auto& point : points) {
    const auto& [row, backups, speed_up, of_median] = point;
    text += csv::line({std::to_string(backups),
                       std::to_string(row->experiment.sync.replicas_to_aggregate),
                       std::to_string(row->experiment.sync.total_num_replicas),
                       field(row->profile->step_p10), field(row->profile->step_p50),
                       field(row->profile->step_p90), field(row->report.step_time.mean),
                       field(interval_half(row->report)), field(speed_up), field(of_median)});
  }
  return text;
}

std::string backup_script(const sim_command& command, const sim_rows& rows,
                          const std::vector<backup_point>& points) {
  auto best = std::ranges::max_element(points, {}, &backup_point::speed_up);
  double top = 0;
  for (const auto& point : points)
    top = std::max({top, point.row->profile->step_p90, point.row->report.step_time.mean});
  auto unit = unit_for(top);
  auto script = plot_beginning({.name = "backups",
                                .title = "What backups cost and gain",
                                .caption = caption_of(command, rows)});
  auto margin = 0.03 * static_cast<double>(points.back().backups - points.front().backups) + 0.3;
  script += fmt::format(
    R"gnuplot(
set rmargin at screen 0.91
set bmargin at screen 0.2
set xlabel "backups b = n - N"
set ylabel "step time, {0}" offset 1.2,0 textcolor rgb "#0b5394"
set y2label "normalised speed-up  t({9}) / t(b) * N / n" offset -0.8,0 textcolor rgb "#d1410c"
set border 11
set y2tics nomirror textcolor rgb "#d1410c"
set ytics textcolor rgb "#0b5394"
set xrange [{1:.3f}:{2:.3f}]
set yrange [0:{3:.6g}]
set y2range [0:{4:.6g}]
set key at screen 0.5, screen 0.05 center horizontal Left reverse samplen 1.6 width 1 maxrows 1
set arrow from first {5}, graph 0 to first {5}, graph 1 nohead lw 1 dt 2 lc rgb "#d1410c" back
set label "best: b = {5}, {6:.3f} times{10}" at first {5}, graph 0.06 {7} offset {8},0 textcolor rgb "#d1410c" front
)gnuplot",
    unit.name, points.front().backups - margin, points.back().backups + margin,
    unit.per_second * 1.08 * top, 1.25 * best->speed_up, best->backups, best->speed_up,
    2 * best->backups > points.front().backups + points.back().backups ? "right" : "left",
    2 * best->backups > points.front().backups + points.back().backups ? -1 : 1,
    points.front().backups,
    edge_remark(best->backups > 0 && (best == points.begin() || std::next(best) == points.end())));
  script += fmt::format(
    R"gnuplot(plot "backups.csv" skip 1 using 1:({0} * $5):({0} * $4):({0} * $6) with yerrorbars pt 7 ps 0.7 lw 1.5 lc rgb "#0b5394" title "median, 10 to 90 %", \
     "" skip 1 using 1:({0} * $7) with points pt 2 ps 0.8 lw 2 lc rgb "#6fa8dc" title "mean", \
     "" skip 1 using 1:9 axes x1y2 with linespoints lw 2 pt 7 ps 0.4 lc rgb "#d1410c" title "speed-up of the mean"
)gnuplot",
    unit.per_second);
  return script;
}

// ---- convergence ----

/// A row in the plot of convergence.
struct goal_point {
  double gradients = 0;
  double steps = 0;
  double seconds = 0; ///< Without unit if the curve of iterations has none.
  double error = 0;   ///< Half the interval of `seconds`.
};

expected<std::vector<goal_point>> goal_points(const sim_command& command, const sim_rows& rows) {
  std::vector<goal_point> points;
  for (const auto& row : rows) {
    if (!is_shown(row)) continue;
    auto goal = goal_of(command, row);
    if (!goal) return tl::unexpected<error>(goal.error());
    points.push_back({static_cast<double>(row.experiment.sync.replicas_to_aggregate), goal->steps,
                      goal->seconds, goal->steps * interval_half(row.report)});
  }
  std::ranges::sort(points, {}, &goal_point::gradients);
  return points;
}

// Whether the curve says only how numbers of steps compare, as 1/N does.
bool is_relative(const std::vector<goal_point>& points) {
  return points.back().steps < 10;
}

std::string convergence_script(const sim_command& command, const sim_rows& rows,
                               const std::vector<goal_point>& points) {
  auto best = std::ranges::min_element(points, {}, &goal_point::seconds);
  double top = 0;
  for (const auto& point : points)
    top = std::max(top, point.seconds + point.error);
  auto relative = is_relative(points);
  auto unit = relative ? time_unit{1 / points.back().seconds, "relative"} : unit_for(top);
  auto height = [&](double seconds) { return unit.per_second * seconds; };
  auto script
    = plot_beginning({.name = "convergence",
                      .title = "Time to converge, if steps go as " + command.iterations.text(),
                      .caption = caption_of(command, rows)});
  auto axis_title = relative ? fmt::format("time, that of N = {} is 1", points.back().gradients)
                             : "time, " + unit.name;
  auto on_the_right = 2 * best->gradients > points.front().gradients + points.back().gradients;
  script += fmt::format(
    R"gnuplot(
set rmargin at screen 0.97
set xlabel "N, gradients that a step needs"
set ylabel {0} offset 1.2,0
set offsets graph 0.03, graph 0.03, 0, 0
set yrange [{1:.6g}:{2:.6g}]
unset key
set arrow from first {3}, graph 0 to first {3}, graph 1 nohead lw 1 dt 2 lc rgb "#d1410c" back
set label "best: N = {3}, time {4}{8}" at first {3}, graph 0.93 {5} offset {6},0 textcolor rgb "#d1410c" front
plot "convergence.csv" skip 1 using 1:({7:.9g} * $2):({7:.9g} * $3) with yerrorbars pt 7 ps 0.3 lw 1 lc rgb "#6fa8dc" notitle, \
     "" skip 1 using 1:({7:.9g} * $2) with linespoints pt 7 ps 0.6 lw 2 lc rgb "#0b5394" notitle
)gnuplot",
    gnuplot_text(axis_title), std::max(0.0, height(best->seconds - 0.25 * (top - best->seconds))),
    height(top + 0.08 * (top - best->seconds)), best->gradients,
    relative ? fmt::format("{:.3f}", height(best->seconds))
             : fmt::format("{:.4g} {}", height(best->seconds), unit.name),
    on_the_right ? "right" : "left", on_the_right ? -1 : 1, unit.per_second,
    edge_remark(can_go_on(rows, best->gradients)
                && (best == points.begin() || std::next(best) == points.end())));
  return script;
}

} // namespace

sim_plot backups_plot(const sim_command& command, const sim_rows& rows) {
  if (auto why = why_no_axis(command); !why.empty()) return {.name = "backups", .why_not = why};
  if (takes_no_time(rows)) return {.name = "backups", .why_not = no_time};
  auto points = backup_points(rows);
  if (points.size() < 2) return {.name = "backups", .why_not = too_few_rows};
  if (points.front().backups == points.back().backups)
    return {.name = "backups", .why_not = "all rows have as many backups; give --aggregate too"};
  return {"backups", backup_table(points), backup_script(command, rows, points)};
}

sim_plot convergence_plot(const sim_command& command, const sim_rows& rows) {
  if (auto why = why_no_axis(command); !why.empty()) return {.name = "convergence", .why_not = why};
  if (takes_no_time(rows)) return {.name = "convergence", .why_not = no_time};
  auto points = goal_points(command, rows);
  if (!points) return {.name = "convergence", .why_not = points.error().message};
  if (points->size() < 2) return {.name = "convergence", .why_not = too_few_rows};
  if (points->front().gradients == points->back().gradients)
    return {.name = "convergence", .why_not = "all rows need as many gradients"};
  std::string text = "aggregate,time,time_error,iterations\n";
  for (auto [gradients, steps, seconds, error] : *points)
    text += csv::line({field(gradients), field(seconds), field(error), field(steps)});
  return {"convergence", text, convergence_script(command, rows, *points)};
}

} // namespace troupe
