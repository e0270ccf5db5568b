// SPDX-License-Identifier: Apache-2.0
// Plots of the fates of gradients, of the replicas' time, and of the staleness of gradients.
#include "actors/recording/csv.hpp"
#include "tools/sim/plots/plot_list.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <span>

namespace troupe {

namespace {

using csv::field;

constexpr uint64_t staleness_shown_max = 30;

// ---- work ----

std::string work_table(const sim_command& command, const sim_rows& rows) {
  auto text = fmt::format("row,{},accepted,stale,cancelled,lost,useful_replica_seconds,"
                          "stale_replica_seconds,cancelled_replica_seconds,"
                          "waiting_replica_seconds,down_replica_seconds,"
                          "replica_seconds_per_accepted\n",
                          field(row_column(command)));
  for (size_t i = 0; i < rows.size(); ++i) {
    auto work = rows[i].profile->work;
    text += csv::line({std::to_string(i), name_field(row_name(command, rows[i])),
                       std::to_string(work.accepted), std::to_string(work.stale),
                       std::to_string(work.cancelled), std::to_string(rows[i].report.lost),
                       field(work.useful_seconds), field(work.stale_seconds),
                       field(work.cancelled_seconds), field(work.waiting_seconds),
                       field(work.down_seconds), field(work.replica_seconds_per_accepted())});
  }
  return text;
}

// The names below bars: no more than can be read, and aslant where they would run into each other.
std::string bar_names(const sim_command& command, const sim_rows& rows) {
  constexpr size_t names_max = 12;
  constexpr size_t letters_max = 52; // side by side, blanks between names included
  auto every = (rows.size() + names_max - 1) / names_max;
  std::string names;
  size_t count = 0;
  size_t longest = 0;
  for (size_t i = 0; i < rows.size(); i += every, ++count) {
    auto name = rows.size() == 1 ? "all steps" : without_middle(row_name(command, rows[i]));
    longest = std::max(longest, letter_count(name));
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", gnuplot_text(name), i);
  }
  auto is_aslant = count * (longest + 1) > letters_max;
  return fmt::format("set xtics {}({})\n{}", is_aslant ? "rotate by 25 right font \",11\" " : "",
                     names, is_aslant ? "set bmargin at screen 0.29\n" : "");
}

/// A part of a bar.
struct bar_part {
  std::string_view columns; ///< The sum of the columns of work.csv up to this part.
  std::string_view colour;
  std::string_view title;
  bool occurs;
};

// Bars are stacked by drawing the sum of all parts first, and shorter sums over it.
std::string bars(std::span<const bar_part> parts, std::string_view divisor, double factor) {
  std::string plots;
  for (const auto& part : parts) {
    if (part.occurs) {
      plots
        += fmt::format("{} skip 1 using 1:({} * ({}) / ({})) with boxes lc rgb \"{}\" title \"{}\"",
                       plots.empty() ? "plot \"work.csv\"" : ", \\\n     \"\"", factor,
                       part.columns, divisor, part.colour, part.title);
    }
  }
  return plots + "\n";
}

std::string fate_panel(const work_totals& all, uint64_t lost) {
  const bar_part parts[] = {{"$3 + $4 + $5 + $6", "#7a7a7a", "lost", lost > 0},
                            {"$3 + $4 + $5", "#f3c669", "cancelled", all.cancelled > 0},
                            {"$3 + $4", "#e0810b", "stale", all.stale > 0},
                            {"$3", "#0b5394", "accepted", true}};
  return "set title \"What became of gradients\" font \",14\"\n"
         "set ylabel \"share of gradients, %\" offset 1.2,0\n"
         "set yrange [0:100]\n"
         "set key at screen 0.27, screen 0.06 center horizontal Left reverse samplen 1 width 1 "
         "maxrows 1\n"
         + bars(parts, "$3 + $4 + $5 + $6", 100);
}

std::string cost_panel(const work_totals& all, const time_unit& unit) {
  const bar_part parts[] = {{"$7 + $8 + $9 + $10 + $11", "#b0b0b0", "down", all.down_seconds > 0},
                            {"$7 + $8 + $9 + $10", "#d6e4f2", "waiting", true},
                            {"$7 + $8 + $9", "#f3c669", "cancelled", all.cancelled > 0},
                            {"$7 + $8", "#e0810b", "stale", all.stale > 0},
                            {"$7", "#0b5394", "useful", true}};
  return fmt::format("unset label\n"
                     "set lmargin at screen 0.56\n"
                     "set rmargin at screen 0.97\n"
                     "set title \"What a gradient that counts costs\" font \",14\"\n"
                     "set ylabel \"replica time for each, {}\" offset 1.2,0\n"
                     "set yrange [0:*]\n"
                     "set key at screen 0.765, screen 0.06\n",
                     unit.name)
         + bars(parts, "$3", unit.per_second);
}

// ---- staleness ----

double sum_of(const std::map<uint64_t, uint64_t>& counts) {
  double sum = 0;
  for (auto [staleness, count] : counts)
    sum += static_cast<double>(count);
  return sum;
}

std::string staleness_table(const sim_command& command, const sim_rows& rows) {
  auto text
    = fmt::format("row,{},staleness_steps,gradients,share_percent\n", field(row_column(command)));
  for (size_t i = 0; i < rows.size(); ++i) {
    auto sum = sum_of(rows[i].report.staleness_counts);
    for (auto [staleness, count] : rows[i].report.staleness_counts)
      text += csv::line({std::to_string(i), name_field(row_name(command, rows[i])),
                         std::to_string(staleness), std::to_string(count),
                         field(100 * static_cast<double>(count) / sum)});
  }
  return text;
}

// In percent.
double smallest_share(const sim_rows& rows) {
  double smallest = 100;
  for (const auto& row : rows) {
    auto sum = sum_of(row.report.staleness_counts);
    for (auto [staleness, count] : row.report.staleness_counts)
      smallest = std::min(smallest, 100 * static_cast<double>(count) / sum);
  }
  return smallest;
}

} // namespace

sim_plot work_plot(const sim_command& command, const sim_rows& rows) {
  double most = 0;
  for (const auto& row : rows)
    if (row.profile->work.accepted > 0)
      most = std::max(most, row.profile->work.replica_seconds_per_accepted());
  if (most == 0)
    return {.name = "work",
            .why_not = takes_no_time(rows) ? no_time : "no gradient counted after the warm-up"};
  auto unit = unit_for(most);
  auto script = plot_beginning({.name = "work",
                                .title = "Work and waste",
                                .caption = caption_of(command, rows),
                                .width = 1080});
  script += fmt::format("set tmargin at screen 0.80\nset bmargin at screen 0.21\n"
                        "set rmargin at screen 0.46\nset boxwidth {}\nset xrange [{}:{}]\n",
                        rows.size() == 1 ? 0.3 : 0.75, rows.size() == 1 ? -0.7 : -0.6,
                        static_cast<double>(rows.size()) - (rows.size() == 1 ? 0.3 : 0.4));
  script += bar_names(command, rows);
  if (rows.size() > 1) script += fmt::format("set xlabel {}\n", gnuplot_text(row_column(command)));
  work_totals all;
  uint64_t lost = 0;
  for (const auto& row : rows) {
    all.stale += row.profile->work.stale;
    all.cancelled += row.profile->work.cancelled;
    all.down_seconds += row.profile->work.down_seconds;
    lost += row.report.lost;
  }
  script += "set multiplot\n" + fate_panel(all, lost) + cost_panel(all, unit);
  return {"work", work_table(command, rows), script + "unset multiplot\n"};
}

sim_plot staleness_plot(const sim_command& command, const sim_rows& rows) {
  uint64_t highest = 0;
  for (const auto& row : rows)
    if (!row.report.staleness_counts.empty())
      highest = std::max(highest, row.report.staleness_counts.rbegin()->first);
  if (highest == 0) return {.name = "staleness", .why_not = "no gradient was late"};
  auto shown = std::min(highest, staleness_shown_max);
  auto drawn = shown_rows(rows.size());
  auto script = plot_beginning({.name = "staleness",
                                .title = "By how many updates gradients were late",
                                .caption = caption_of(command, rows)});
  script += fmt::format(R"gnuplot(
set rmargin at screen 0.97
set xlabel "updates late{0}"
set ylabel "share of gradients, %" offset 1.2,0
set logscale y
set format y "%g"
set lmargin at screen 0.11
set yrange [{2:.3g}:130]
set xrange [-0.6:{1}.6]
set boxwidth 0.75
set key at screen 0.97, screen 0.83 right top Right samplen 1.5 spacing 1.15 opaque
)gnuplot",
                        highest > shown ? fmt::format(" (the latest: {})", highest) : "", shown,
                        smallest_share(rows) / 2);
  if (shown <= 20) script += "set xtics 1\n";
  if (rows.size() == 1) {
    script += "unset key\nplot \"staleness.csv\" skip 1 using 3:5 with boxes lc rgb \"#e0810b\"";
    if (rows[0].report.staleness_counts.size() <= 12)
      script += ", \\\n     \"\" skip 1 using 3:5:(sprintf(\"%.2g\", $5)) with labels offset 0,0.7";
    script += "\n";
    return {"staleness", staleness_table(command, rows), script};
  }
  for (size_t i = 0; i < drawn.size(); ++i) {
    script += fmt::format("{}\"staleness.csv\" skip 1 using ($1 == {} ? $3 : NaN):5 with "
                          "linespoints lw 1.5 pt 7 ps 0.5 lc rgb \"{}\" title {}",
                          i == 0 ? "plot " : ", \\\n     ", drawn[i], line_colour(i, drawn.size()),
                          gnuplot_text(line_name(command, rows[drawn[i]])));
  }
  return {"staleness", staleness_table(command, rows), script + "\n"};
}

} // namespace troupe
