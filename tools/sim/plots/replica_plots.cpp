// SPDX-License-Identifier: Apache-2.0
// Plots of single replicas: their contributions, a timeline, and which were slow when.
#include "actors/recording/csv.hpp"
#include "actors/recording/seconds.hpp"
#include "tools/sim/plots/plot_list.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <set>

namespace troupe {

namespace {

using csv::field;
using kind = replica_state_kind;

constexpr size_t timeline_replicas_max = 40;
constexpr size_t timeline_gradients_max = 12; // of each replica
constexpr size_t marked_steps_max = 30;

constexpr const char* one_row_only = "shows one run: leave out --sweep";

// ---- contributions ----

constexpr size_t single_replicas_max = 200; // bars that can be told apart

// Replicas by number, or, if they are many, from the one that gave least on.
std::vector<size_t> contribution_order(const std::vector<replica_work>& replicas) {
  std::vector<size_t> order(replicas.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (order.size() > single_replicas_max)
    std::ranges::stable_sort(order, {}, [&](size_t i) { return replicas[i].accepted; });
  return order;
}

std::string contributions_table(const std::vector<replica_work>& replicas) {
  std::string text = "line,replica,accepted,stale,cancelled,useful_seconds,wasted_seconds\n";
  size_t line = 0;
  for (auto i : contribution_order(replicas)) {
    const auto& work = replicas[i];
    text += csv::line({std::to_string(line++), std::to_string(i), std::to_string(work.accepted),
                       std::to_string(work.stale), std::to_string(work.cancelled),
                       field(work.useful_seconds), field(work.wasted_seconds)});
  }
  return text;
}

// ---- timeline ----

/// Some replicas of a run, in the order of their lines from the top down.
class chosen_replicas {
public:
  chosen_replicas(size_t count, const std::vector<replica_span>& spans) : shown_(count) {
    std::iota(shown_.begin(), shown_.end(), 0U);
    if (count > timeline_replicas_max) choose_some(spans);
  }

  [[nodiscard]] const std::vector<uint32_t>& all() const { return shown_; }

  [[nodiscard]] std::optional<size_t> line_of(uint32_t replica) const {
    auto found = std::ranges::lower_bound(shown_, replica);
    if (found == shown_.end() || *found != replica) return std::nullopt;
    return found - shown_.begin();
  }

  /// Replicas that are shown because much of their work was dropped.
  [[nodiscard]] size_t late_count() const { return late_count_; }

private:
  // Half of the lines are for those that lost most in these steps, the rest evenly from all.
  void choose_some(const std::vector<replica_span>& spans) {
    auto count = shown_.size();
    std::vector<job_time> lost(count);
    for (const auto& span : spans)
      if (span.what != kind::accepted && span.what != kind::waiting)
        lost[span.replica] += span.end - span.start;
    std::ranges::stable_sort(shown_, std::greater{}, [&](uint32_t i) { return lost[i]; });
    std::set<uint32_t> chosen;
    for (auto i : shown_) {
      if (chosen.size() >= timeline_replicas_max / 2 || lost[i] == job_time{0}) break;
      chosen.insert(i);
    }
    late_count_ = chosen.size();
    auto evenly_chosen = timeline_replicas_max - chosen.size();
    for (size_t i = 0; i < evenly_chosen; ++i)
      chosen.insert(static_cast<uint32_t>(i * count / evenly_chosen));
    shown_.assign(chosen.begin(), chosen.end());
  }

  std::vector<uint32_t> shown_;
  size_t late_count_ = 0;
};

// Only the drawn spans; timeline.json has all replicas.
std::string timeline_table(const std::vector<replica_span>& spans, const chosen_replicas& chosen,
                           job_time end) {
  std::string text = "line,replica,kind,start_seconds,end_seconds,step,what\n";
  for (const auto& span : spans) {
    auto line = chosen.line_of(span.replica);
    if (!line || span.start >= end) continue;
    text += csv::line({std::to_string(*line), std::to_string(span.replica),
                       std::to_string(static_cast<int>(span.what)), csv::seconds(span.start),
                       csv::seconds(std::min(span.end, end)), std::to_string(span.step),
                       to_string(span.what)});
  }
  return text;
}

std::string timeline_title(size_t shown, size_t late, size_t all) {
  if (shown == all) return "What every replica did";
  return fmt::format("What {} of {} replicas did: {} that lost most, and others evenly chosen",
                     shown, all, late);
}

std::string step_marks(const std::vector<job_time>& bounds, size_t count, uint64_t first_step) {
  if (count > marked_steps_max) return {};
  std::string tics;
  std::string lines;
  for (size_t i = 0; i <= count; ++i) {
    lines += fmt::format("set arrow from first {0:.9g}, graph 0 to first {0:.9g}, graph 1 nohead "
                         "lw 1 lc rgb \"#333333\" front\n",
                         seconds(bounds[i]));
  }
  auto shown_seconds = seconds(bounds[count] - bounds[0]);
  for (size_t i = 0; i < count; ++i) {
    if (seconds(bounds[i + 1] - bounds[i]) > 0.03 * shown_seconds)
      tics += fmt::format("{}'{}' {:.9g}", tics.empty() ? "" : ", ", first_step + i,
                          seconds(bounds[i] + bounds[i + 1]) / 2);
  }
  return lines + "set x2tics (" + tics + ") scale 0 offset 0,-0.5\n";
}

std::string replica_names(const std::vector<uint32_t>& replicas) {
  std::string names;
  for (size_t i = 0; i < replicas.size(); ++i)
    names += fmt::format("{}'{}' {}", names.empty() ? "" : ", ", replicas[i], i);
  return "set ytics (" + names + ") scale 0 font \",9\"\n";
}

constexpr std::string_view kind_colours[]
  = {"#0b5394", "#e0810b", "#f3c669", "#9fc5a8", "#4f8f63", "#e3edf6", "#9a9a9a"};

// Only states that occur get a name in the legend.
std::string timeline_boxes(const std::vector<replica_span>& spans, const chosen_replicas& chosen,
                           job_time begin, job_time end) {
  auto gap = 0.0012 * seconds(end - begin);
  std::set<kind> states;
  for (const auto& span : spans)
    if (chosen.line_of(span.replica) && span.start < end) states.insert(span.what);
  std::string plots;
  for (auto state : states) {
    auto number = static_cast<size_t>(state);
    // A hair's breadth parts gradients that follow each other.
    plots += fmt::format("{}\"timeline.csv\" skip 1 using ($3 == {} ? $4 : NaN):1:4:"
                         "($5 - $4 > {:.3g} ? $5 - {:.3g} : $5):($1 - 0.38):($1 + 0.38) "
                         "with boxxyerror lc rgb \"{}\" title \"{}\"",
                         plots.empty() ? "plot " : ", \\\n     ", number, 2 * gap, gap,
                         kind_colours[number], to_string(state));
  }
  return plots + "\n";
}

// A line for every stretch of steps with the same value in a row: 0 where there was no gradient,
// less where it was told to stop.
std::string slow_down_table(const slow_down_map& map) {
  std::string text = "replica,first_step,last_step,slow_down\n";
  for (size_t y = 0; y < map.rows.size(); ++y) {
    auto row = map.rows[y];
    std::ranges::replace_if(
      row, [](float value) { return std::isnan(value); }, 0);
    for (size_t begin = 0, end = 0; begin < row.size(); begin = end) {
      while (end < row.size() && row[end] == row[begin])
        ++end;
      text += fmt::format("{},{},{},{:.4g}\n", y * map.replicas_per_row, map.first_step + begin,
                          map.first_step + end - 1, row[begin]);
    }
  }
  return text;
}

// The legend leaves out verdicts that do not occur.
std::string title_if(bool occurs, std::string_view name) {
  return occurs ? fmt::format("title \"{}\"", name) : "notitle";
}

} // namespace

sim_plot contributions_plot(const sim_command& command, const sim_rows& rows) {
  if (rows.size() != 1) return {.name = "contributions", .why_not = one_row_only};
  const auto& replicas = rows[0].profile->replicas;
  const auto& work = rows[0].profile->work;
  if (work.accepted == 0)
    return {.name = "contributions", .why_not = "no gradient counted after the warm-up"};
  auto many = replicas.size() > single_replicas_max;
  auto every = many ? replicas.size() / single_replicas_max : 1;
  auto script
    = plot_beginning({.name = "contributions",
                      .title = many ? "What replicas gave, from the one that gave least on"
                                    : "What each replica gave",
                      .caption = caption_of(command, rows)});
  script += fmt::format(R"gnuplot(
set rmargin at screen 0.97
set bmargin at screen 0.2
set xlabel "{0}"
set ylabel "gradients" offset 0.7,0
set xrange [-0.7:{1}.7]
set yrange [0:*]
set boxwidth {2}
{4}set key at screen 0.52, screen 0.05 center horizontal Left reverse samplen 1 width 1 maxrows 1
every_so_many = {3}
plot "contributions.csv" skip 1 every every_so_many using 1:($3 + $4 + $5) with boxes lc rgb "#f3c669" {5}, \
     "" skip 1 every every_so_many using 1:($3 + $4) with boxes lc rgb "#e0810b" {6}, \
     "" skip 1 every every_so_many using 1:3 with boxes lc rgb "#0b5394" title "accepted"
)gnuplot",
                        many ? "replicas, in this order" : "replica", replicas.size() - 1,
                        many ? 1.02 * static_cast<double>(every) : 0.75, every,
                        whole_tics("x", replicas.size()), title_if(work.cancelled > 0, "cancelled"),
                        title_if(work.stale > 0, "stale"));
  return {"contributions", contributions_table(replicas), script};
}

sim_plot timeline_plot(const sim_command& command, const sim_rows& rows) {
  if (rows.size() != 1) return {.name = "timeline", .why_not = one_row_only};
  const auto& spans = *rows[0].profile->spans;
  const auto& bounds = spans.bounds();
  if (bounds.empty()) return {.name = "timeline", .why_not = "no step came after the warm-up"};
  const auto& sync = rows[0].experiment.sync;
  auto updates = std::max<size_t>(sync.total_num_replicas / sync.replicas_to_aggregate, 1);
  auto steps = std::min(timeline_gradients_max * updates, bounds.size() - 1);
  if (bounds[steps] == bounds[0])
    return {.name = "timeline",
            .why_not = takes_no_time(rows) ? no_time : "the steps that it would show take no time"};
  std::vector<replica_span> in_view;
  std::ranges::copy_if(spans.spans(), std::back_inserter(in_view),
                       [&](const replica_span& span) { return span.start < bounds[steps]; });
  chosen_replicas chosen{rows[0].profile->replicas.size(), in_view};
  auto lines = chosen.all().size();
  auto height = static_cast<double>(184 + 14 * std::max<size_t>(lines, 6));
  auto script = plot_beginning(
    {.name = "timeline",
     .title = timeline_title(lines, chosen.late_count(), rows[0].profile->replicas.size()),
     .caption = caption_of(command, rows),
     .width = 1080,
     .height = static_cast<int>(height)});
  script += replica_names(chosen.all());
  script += step_marks(bounds, steps, spans.first_step());
  script += fmt::format(
    R"gnuplot(
set rmargin at screen 0.975
set bmargin at screen {0:.4f}
set tmargin at screen {1:.4f}
set border 1
unset grid
set xlabel "seconds since the job began{6}"
set ylabel "replica" offset 1.2,0
set xrange [{2:.9g}:{3:.9g}]
set yrange [{4}.6:-0.6]
set key at screen 0.52, screen {5:.4f} center horizontal Left reverse samplen 1 width 1 maxrows 1
)gnuplot",
    96 / height, 1 - 88 / height, seconds(bounds[0]), seconds(bounds[steps]), lines - 1,
    18 / height, steps > marked_steps_max ? fmt::format("; {} updates", steps) : "; above: steps");
  return {"timeline", timeline_table(in_view, chosen, bounds[steps]),
          script + timeline_boxes(in_view, chosen, bounds[0], bounds[steps])};
}

sim_plot slow_down_plot(const sim_command& command, const sim_rows& rows) {
  if (rows.size() != 1) return {.name = "slow-down", .why_not = one_row_only};
  auto map = slow_down_of(*rows[0].profile->spans);
  auto timed_steps = rows[0].experiment.steps - rows[0].experiment.warm_up;
  if (map.rows.empty()) return {.name = "slow-down", .why_not = "no step came after the warm-up"};
  if (std::isnan(map.usual_seconds))
    return {.name = "slow-down", .why_not = "no gradient takes any time"};
  std::vector<double> values;
  bool has_cancelled = false;
  for (const auto& row : map.rows) {
    for (float value : row) {
      if (value > 0) values.push_back(value);
      has_cancelled = has_cancelled || value < 0;
    }
  }
  if (values.empty()) values = {1};
  auto top = std::clamp(sorted_values{std::move(values)}.quantile(0.998), 1.5, 6.0);
  auto title = map.replicas_per_row == 1
                 ? std::string{"How many times as long as usual a replica took"}
                 : fmt::format("How many times as long as usual the slowest of {} replicas took",
                               map.replicas_per_row);
  auto script = plot_beginning(
    {.name = "slow-down", .title = title, .caption = caption_of(command, rows), .width = 960});
  auto unit = unit_for(map.usual_seconds);
  script += fmt::format(
    R"gnuplot(
set rmargin at screen 0.88
unset grid
{12}set xlabel "step{11}; usual: {0:.3g} {1}; grey: no gradient{10}"
set ylabel "replica" offset 1.2,0
set xrange [{2}:{3}]
set yrange [{4}:{5}]
set cbrange [0.5:{6:.3g}]
set palette defined (0.5 "#5b8fc7", 0.9 "#f4f6f8", 1.1 "#f4f6f8", {7:.3g} "#f6b94c", {8:.3g} "#d1410c", {6:.3g} "#5a0a05")
set cbtics scale 0
set label "times" at screen 0.90, screen 0.885 left textcolor rgb "#444444"
set object 1 rectangle from graph 0, graph 0 to graph 1, graph 1 fc rgb "#f4f6f8" fs noborder behind
unset key
# What is as usual is the background: thousands of boxes less.
unusual(value) = value > 1.1 || (value > 0 && value < 0.9)
plot "slow-down.csv" skip 1 using ($4 == 0 ? $2 : NaN):1:($2 - 0.5):($3 + 0.5):($1 - 0.5):($1 + {9} - 0.5) with boxxyerror lc rgb "#bdbdbd", \
     "" skip 1 using ($4 < 0 ? $2 : NaN):1:($2 - 0.5):($3 + 0.5):($1 - 0.5):($1 + {9} - 0.5) with boxxyerror lc rgb "#8e6bb0", \
     "" skip 1 using (unusual($4) ? $2 : NaN):1:($2 - 0.5):($3 + 0.5):($1 - 0.5):($1 + {9} - 0.5):4 with boxxyerror lc palette
)gnuplot",
    unit.per_second * map.usual_seconds, unit.name, static_cast<double>(map.first_step) - 0.5,
    static_cast<double>(map.first_step + map.rows[0].size()) - 0.5,
    static_cast<double>(map.rows.size() * map.replicas_per_row) - 0.5, -0.5, top,
    1 + (top - 1) * 0.3, 1 + (top - 1) * 0.65, map.replicas_per_row,
    has_cancelled ? "; violet: told to stop" : "",
    map.rows[0].size() < timed_steps ? fmt::format(" ({} of {})", map.rows[0].size(), timed_steps)
                                     : "",
    whole_tics("y", map.rows.size() * map.replicas_per_row));
  return {"slow-down", slow_down_table(map), script};
}

} // namespace troupe
