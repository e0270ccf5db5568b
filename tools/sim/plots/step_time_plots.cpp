// SPDX-License-Identifier: Apache-2.0
// Plots of step times, and of the arrivals of gradients within a step.
#include "actors/recording/csv.hpp"
#include "messages/mapped.hpp"
#include "tools/sim/plots/plot_list.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

using csv::field;

// The rows that made steps, or so many of them as get a line.
std::vector<size_t> drawn_rows(const sim_rows& rows) {
  std::vector<size_t> with_steps;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].profile->step_times.empty()) with_steps.push_back(i);
  return mapped(shown_rows(with_steps.size()), [&](auto i) { return with_steps[i]; });
}

std::string row_remark(size_t drawn, size_t all) {
  return drawn == all ? "" : fmt::format(" ({} of {} rows)", drawn, all);
}

// Selects a row's points from the table of all rows. An empty x or y is the fourth column, a time.
std::string points_of(size_t row, double per_second, std::string_view x, std::string_view y) {
  return fmt::format("using ($1 == {} ? ({}) : NaN):({})", row,
                     x.empty() ? fmt::format("{} * $4", per_second) : std::string{x},
                     y.empty() ? fmt::format("{} * $4", per_second) : std::string{y});
}

// ---- step times ----

std::string step_time_table(const sim_command& command, const sim_rows& rows) {
  auto text = fmt::format("row,{},share_of_steps,step_seconds\n", field(row_column(command)));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (auto [share, seconds] : rows[i].profile->step_times)
      text += csv::line(
        {std::to_string(i), name_field(row_name(command, rows[i])), field(share), field(seconds)});
  }
  return text;
}

std::string quantile_marks(const sim_rows& rows, const std::vector<size_t>& drawn,
                           const time_unit& unit) {
  std::string points;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto& time = rows[drawn[i]].report.step_time;
    const std::pair<double, double> marks[]
      = {{time.p50, 50}, {time.p90, 90}, {time.p99, 99}, {time.p999, 99.9}};
    for (auto [seconds, percent] : marks)
      if (!std::isnan(seconds))
        points += fmt::format("{:.6g},{},{}\n", unit.per_second * seconds, percent, i);
  }
  return "$marks << END\n" + points + "END\n";
}

std::string step_time_curves(const sim_command& command, const sim_rows& rows,
                             const std::vector<size_t>& drawn, const time_unit& unit,
                             bool with_titles) {
  std::string plots;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto& row = rows[drawn[i]];
    auto title = fmt::format("{}: max {:.3g} {}", line_name(command, row),
                             unit.per_second * row.report.step_time.max, unit.name);
    plots += fmt::format(
      "{}\"step-time.csv\" skip 1 {} with steps lw 2 lc rgb \"{}\" {}",
      i == 0 ? "plot " : ", \\\n     ", points_of(drawn[i], unit.per_second, "", "100 * $3"),
      line_colour(i, drawn.size()), with_titles ? "title " + gnuplot_text(title) : "notitle");
  }
  for (size_t i = 0; i < drawn.size(); ++i) {
    plots += fmt::format(", \\\n     $marks using ($3 == {} ? $1 : NaN):2 with points pt 7 ps 0.5 "
                         "lc rgb \"{}\" notitle",
                         i, line_colour(i, drawn.size()));
  }
  return plots + "\n";
}

// ---- arrivals ----

// A thousand of ten thousand gradients make the same curve; at its ends every one counts.
bool is_shown(size_t index, size_t count) {
  constexpr size_t points = 1000;
  constexpr size_t ends = 100;
  return index < ends || index + ends >= count || index % (count / points + 1) == 0;
}

std::string arrivals_table(const sim_command& command, const sim_rows& rows) {
  auto text = fmt::format("row,{},k,mean_seconds,p10_seconds,median_seconds,p90_seconds\n",
                          field(row_column(command)));
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& arrivals = rows[i].profile->arrivals;
    for (size_t k = 0; k < arrivals.size(); ++k) {
      if (!is_shown(k, arrivals.size())) continue;
      const auto& arrival = arrivals[k];
      text += csv::line({std::to_string(i), name_field(row_name(command, rows[i])),
                         std::to_string(arrival.k), field(arrival.mean), field(arrival.p10),
                         field(arrival.p50), field(arrival.p90)});
    }
  }
  return text;
}

std::string arrival_lines(const sim_command& command, const sim_rows& rows,
                          const std::vector<size_t>& drawn, const time_unit& unit) {
  std::string plots = "plot ";
  if (drawn.size() == 1) {
    plots += fmt::format("\"arrivals.csv\" skip 1 using 3:({0} * $5):({0} * $7) with filledcurves "
                         "lc rgb \"#d6e4f2\" title \"80 of 100 steps\", \\\n     ",
                         unit.per_second);
  }
  for (size_t i = 0; i < drawn.size(); ++i) {
    auto colour = line_colour(i, drawn.size());
    auto name = drawn.size() == 1 ? "mean" : line_name(command, rows[drawn[i]]);
    auto median = fmt::format("{} * $6", unit.per_second);
    plots
      += fmt::format("{}\"arrivals.csv\" skip 1 {} with lines lw 2 lc rgb \"{}\" title {}, \\\n"
                     "     \"\" skip 1 {} with lines lw 1.5 dt 3 lc rgb \"{}\" {}",
                     i == 0 ? "" : ", \\\n     ", points_of(drawn[i], unit.per_second, "$3", ""),
                     colour, gnuplot_text(name), points_of(drawn[i], unit.per_second, "$3", median),
                     colour, drawn.size() == 1 ? "title \"median\"" : "notitle");
  }
  return plots + "\n";
}

} // namespace

sim_plot step_time_plot(const sim_command& command, const sim_rows& rows) {
  auto drawn = drawn_rows(rows);
  if (drawn.empty()) return {.name = "step-time", .why_not = "no step came after the warm-up"};
  double end = 0;
  double longest = 0;
  double shortest = rows[drawn[0]].report.step_time.p90;
  double least = rows[drawn[0]].profile->step_p10;
  for (auto i : drawn) {
    const auto& time = rows[i].report.step_time;
    end = std::max(end, std::min(1.15 * time.p90, 1.05 * time.max));
    longest = std::max(longest, time.max);
    shortest = std::min(shortest, time.p90);
    least = std::min(least, rows[i].profile->step_p10);
  }
  if (longest == 0) return {.name = "step-time", .why_not = no_time};
  if (shortest == 0) end = 1.05 * longest; // most take no time: a logarithmic panel shows none
  auto has_p999 = std::ranges::any_of(
    drawn, [&](size_t i) { return !std::isnan(rows[i].report.step_time.p999); });
  auto unit = unit_for(end);
  auto script = plot_beginning(
    {.name = "step-time",
     .title = "Share of steps that took no longer" + row_remark(drawn.size(), rows.size()),
     .caption = caption_of(command, rows)});
  script += quantile_marks(rows, drawn, unit);
  script
    += fmt::format(R"gnuplot(
set multiplot
set rmargin at screen 0.665
set xlabel "step time, {0}"
set ylabel "share of steps, %" offset 1.2,0
set xrange [{1:.6g}:{2:.6g}]
set yrange [0:100]
set key at screen 0.695, screen 0.855 left top Left reverse samplen 1.2 spacing 1.15
set label "dots: p50, p90{3} p99{4}" at screen 0.97, screen 0.907 right front textcolor rgb "#666666" font ",12"
)gnuplot",
                   unit.name, std::max(0.0, unit.per_second * (least - 0.08 * (end - least))),
                   unit.per_second * end, has_p999 ? "," : " and", has_p999 ? " and p99.9" : "");
  script += step_time_curves(command, rows, drawn, unit, true);
  if (shortest == 0 || longest <= 1.0001 * shortest)
    return {"step-time", step_time_table(command, rows), script + "unset multiplot\n"};
  script += tail_panel_beginning({.left = 0.74,
                                  .top = 0.4,
                                  .label_height = 1.1,
                                  .low = unit.per_second * shortest,
                                  .high = unit.per_second * 1.1 * longest});
  script += step_time_curves(command, rows, drawn, unit, false) + "unset multiplot\n";
  return {"step-time", step_time_table(command, rows), script};
}

sim_plot arrivals_plot(const sim_command& command, const sim_rows& rows) {
  auto drawn = drawn_rows(rows);
  if (drawn.empty()) return {.name = "arrivals", .why_not = "no step came after the warm-up"};
  if (std::ranges::all_of(drawn, [&](size_t i) { return rows[i].profile->arrivals.size() < 2; }))
    return {.name = "arrivals", .why_not = "a step takes a single gradient"};
  double top = 0;
  double low = rows[drawn[0]].profile->arrivals.front().p10;
  for (auto i : drawn) {
    const auto& last = rows[i].profile->arrivals.back();
    low = std::min(low, rows[i].profile->arrivals.front().p10);
    top = std::max({top, last.mean, last.p50, drawn.size() == 1 ? last.p90 : 0});
  }
  if (top == 0)
    return {.name = "arrivals",
            .why_not
            = takes_no_time(rows) ? no_time : "all gradients are there when their step begins"};
  auto unit = unit_for(top);
  auto script = plot_beginning(
    {.name = "arrivals",
     .title = "When the k-th gradient of a step is there" + row_remark(drawn.size(), rows.size()),
     .caption = caption_of(command, rows)});
  script += fmt::format(R"gnuplot(
set rmargin at screen {3}
set xlabel "k, gradients of the step that are there"
set ylabel "since the step began, {0}" offset 1.2,0
set xrange [0:*]
set yrange [{2:.6g}:{1:.6g}]
set key at screen {4}, screen 0.83 left top Left reverse samplen 1.2 spacing 1.15
)gnuplot",
                        unit.name, unit.per_second * 1.05 * top,
                        std::max(0.0, unit.per_second * (low - 0.3 * (top - low))),
                        drawn.size() > 1 ? 0.72 : 0.97, drawn.size() > 1 ? 0.74 : 0.13);
  if (drawn.size() > 1)
    script += "set label \"lines: mean; dotted: median\" at screen 0.97, screen 0.87 right "
              "textcolor rgb \"#666666\" font \",11\"\n";
  return {"arrivals", arrivals_table(command, rows),
          script + arrival_lines(command, rows, drawn, unit)};
}

} // namespace troupe
