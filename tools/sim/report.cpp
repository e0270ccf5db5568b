// SPDX-License-Identifier: Apache-2.0
// Lays out the results of simulations as a table and as JSON, and writes them.
#include "tools/sim/report.hpp"

#include "actors/recording/output_file.hpp"
#include "actors/recording/readable.hpp"
#include "actors/recording/seconds.hpp"
#include "simulation/distributions/trace_resampling.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Whether a time to the goal was asked for, and the row may have one.
bool has_goal(const sim_command& command, const sim_row& row) {
  return command.origins.contains("iterations") && row.report.is_whole();
}

// ---- for programs ----

// A planned fault as a scenario file has it, which leaves out what is for good or about all nodes.
json fault_json(const fault& planned) {
  json result{{"kind", to_string(planned.kind)}, {"at", seconds(planned.at)}};
  if (planned.lasts > job_time{0}) result["for"] = seconds(planned.lasts);
  if (!planned.who.empty()) result["who"] = planned.who;
  switch (planned.kind) {
  case fault_kind::partition:
    if (!planned.other.empty()) result["other"] = planned.other;
    result["one-way"] = planned.one_way;
    break;
  case fault_kind::slow:
    result["factor"] = planned.factor;
    break;
  case fault_kind::skew:
    result["ahead"] = seconds(planned.ahead);
    result["rate"] = planned.rate;
    break;
  case fault_kind::messages:
    result["message"] = planned.message;
    result["lost"] = planned.probabilities.lost;
    result["doubled"] = planned.probabilities.duplicated;
    result["late"] = planned.probabilities.reordered;
    break;
  case fault_kind::corrupt:
    result["how"] = planned.how == corruption::wrong_shape ? "shape" : "nan";
    break;
  case fault_kind::crash:
  case fault_kind::crash_with_token:
  case fault_kind::freeze:
  case fault_kind::swizzle:
    break;
  }
  return result;
}

json scenario_json(const sim_row& row) {
  const auto& experiment = row.experiment;
  const auto& sync = experiment.sync;
  json result{{"replicas", sync.total_num_replicas},
              {"aggregate", sync.replicas_to_aggregate},
              {"dynamic", sync.dynamic.has_value()},
              {"policy", row.options.policy},
              {"distinct", sync.one_gradient_per_replica},
              {"slack", sync.slack},
              {"local_steps", experiment.local_sgd.local_steps},
              {"averaging_time", seconds(experiment.local_sgd.averaging_time)},
              {"initial_tokens", sync.first_tokens()},
              {"dead", experiment.dead},
              {"compute", experiment.compute.text()},
              {"compute_mean", nullptr},
              {"steps", experiment.steps},
              {"warm_up", experiment.warm_up},
              {"runs", experiment.runs}};
  if (auto mean = experiment.compute.mean()) result["compute_mean"] = *mean;
  // The other options, as they were given.
  for (auto& [name, value] : option_texts(row.options)) {
    std::ranges::replace(name, '-', '_');
    if (name != "seed" && name != "threads" && name != "engine" && !result.contains(name))
      result[name] = value;
  }
  for (const auto& planned : row.options.fault_list)
    result["fault"].push_back(fault_json(planned));
  return result;
}

json stall_json(const experiment_report& report) {
  const auto& stalled = *report.stalled;
  json result{{"step", stalled.step},       {"live", stalled.live},
              {"needed", stalled.needed},   {"tokens", nullptr},
              {"reason", stalled.reason},   {"seed", report.stalled_seed},
              {"runs", report.stalled_runs}};
  if (stalled.tokens) result["tokens"] = *stalled.tokens;
  return result;
}

json difference_json(const interval_estimate& difference) {
  return {{"mean", difference.mean},
          {"standard_error", difference.standard_error},
          {"low", difference.low},
          {"high", difference.high},
          {"pairs", difference.count}};
}

json histogram_json(const std::map<uint64_t, uint64_t>& counts) {
  json result = json::object();
  for (auto [staleness, count] : counts)
    result[std::to_string(staleness)] = count;
  return result;
}

json range_json(const quantile_range& range) {
  return {range.low, range.high};
}

json learning_json(const learning_figures& learnt, double target_loss) {
  json curve = json::array();
  for (const auto& point : learnt.curve)
    curve.push_back({{"step", point.step},
                     {"seconds", point.seconds},
                     {"loss", point.loss},
                     {"slow_loss", point.slow_loss},
                     {"fast_loss", point.fast_loss}});
  return {{"loss", learnt.loss},
          {"slow_loss", learnt.slow_loss},
          {"fast_loss", learnt.fast_loss},
          {"target_loss", target_loss},
          {"seconds_to_target", learnt.seconds_to_target},
          {"curve", std::move(curve)}};
}

json trace_json(const trace_use& use) {
  auto draws = use.trace.table->draw_count();
  return {{"file", use.trace.file}, {"replicas", use.trace.table->seconds.size()},
          {"draws", draws},         {"block", trace_resampling::block_length(draws)},
          {"repeats", use.repeats}, {"is_exceeded", use.is_exceeded}};
}

json row_json(const sim_command& command, const sim_row& row) {
  const auto& report = row.report;
  const auto& time = report.step_time;
  json result{
    {"scenario", scenario_json(row)},
    {"seed", row.experiment.seed},
    {"step_time",
     {{"mean", time.mean},
      {"standard_error", time.standard_error},
      {"p50", time.p50},
      {"p90", time.p90},
      {"p99", time.p99},
      {"p999", time.p999},
      {"max", time.max},
      {"p50_interval", range_json(time.p50_range)},
      {"p90_interval", range_json(time.p90_range)},
      {"p99_interval", range_json(time.p99_range)}}},
    {"steps", report.steps},
    {"updates_per_second", report.updates_per_second()},
    {"gradients_per_second", report.gradients_per_second()},
    {"accepted", report.accepted},
    {"stale", report.stale},
    {"cancelled", report.cancelled},
    {"lost", report.lost},
    {"restarts", report.restarts},
    {"undone_steps", report.undone_steps},
    {"undone_accepted", report.undone_accepted},
    {"down_seconds", report.down_seconds},
    {"probes", report.probes},
    {"drop_fraction", report.drop_fraction()},
    {"staleness",
     {{"mean", report.mean_staleness()}, {"histogram", histogram_json(report.staleness_counts)}}},
    {"needed", {{"mean", report.mean_needed()}, {"histogram", histogram_json(report.needed)}}},
    {"wasted_replica_seconds", report.wasted_replica_seconds},
    {"virtual_seconds", report.virtual_seconds},
    {"wall_seconds", report.wall_seconds},
    {"events", report.events},
    {"events_per_second", report.events_per_second()},
    {"log_hash", fmt::format("{:016x}", report.log_hash)},
    {"trace", nullptr},
    {"goal", nullptr},
    {"learning", nullptr},
    {"stalled", nullptr},
    {"difference", nullptr}};
  if (report.trace) result["trace"] = trace_json(*report.trace);
  if (has_goal(command, row))
    if (auto goal = goal_of(command, row))
      result["goal"] = {{"steps", goal->steps}, {"seconds", goal->seconds}};
  if (report.learnt) result["learning"] = learning_json(*report.learnt, row.experiment.target_loss);
  if (report.stalled) result["stalled"] = stall_json(report);
  if (row.difference) result["difference"] = difference_json(*row.difference);
  return result;
}

// ---- for people ----

// Rows of cells, in columns that are as wide as they must be.
std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      text += fmt::format("{}{:>{}}", i == 0 ? "" : "  ", row[i], widths[i]);
    text += '\n';
  }
  return text;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:#.5g}", value) : "-";
}

// The intervals of quantiles; "-": too few steps.
std::string quantile_line(const sim_row& row) {
  const auto& time = row.report.step_time;
  if (std::isnan(row.report.half_width())) return {};
  auto quantile = [](std::string_view name, double value, const quantile_range& range) {
    return fmt::format("{} {} [{}, {}]", name, number(value), number(range.low),
                       number(range.high));
  };
  return fmt::format("in 95 of 100 cases: {}, {}, {}\n", quantile("p50", time.p50, time.p50_range),
                     quantile("p90", time.p90, time.p90_range),
                     quantile("p99", time.p99, time.p99_range));
}

std::string difference_text(const sim_row& row) {
  if (!row.difference) return "-";
  return fmt::format("{:+.4g} [{:+.4g}, {:+.4g}]", row.difference->mean, row.difference->low,
                     row.difference->high);
}

// The share of the time of all replicas while they were live.
double wasted_percent(const sim_row& row) {
  return 100 * row.report.wasted_replica_seconds / row.report.live_replica_seconds;
}

std::vector<std::string> cells_of(const sim_row& row) {
  const auto& report = row.report;
  const auto& time = report.step_time;
  return {number(time.mean),
          number(report.half_width()),
          number(time.p50),
          number(time.p90),
          number(time.p99),
          number(time.max),
          fmt::format("{:.2f}", 100 * report.drop_fraction()),
          number(report.updates_per_second()),
          number(report.gradients_per_second()),
          number(wasted_percent(row))};
}

// Adds the figures of a row that has learnt something, "-" for another.
void add_learnt(const sim_row& row, std::vector<std::string>& cells) {
  constexpr auto none = std::numeric_limits<double>::quiet_NaN();
  auto learnt = row.report.learnt.value_or(learning_figures{none, none, none, none, {}});
  for (double value : {learnt.loss, learnt.slow_loss, learnt.fast_loss, learnt.seconds_to_target})
    cells.push_back(number(value));
}

std::string headline(const sim_command& command, const sim_row& first) {
  auto line = std::string{"simulated"};
  for (const auto& [key, value] : option_texts(first.options))
    if (key != command.sweep.key && key != command.across.key)
      line += fmt::format("  --{} {}", key, value);
  return line + "\n";
}

// The row's value of each swept option.
std::vector<std::string> values_of(const sim_command& command, const sim_row& row) {
  std::vector<std::string> values;
  for (const auto& key : {command.sweep.key, command.across.key})
    if (!key.empty()) values.push_back(value_text(key, row.options));
  return values;
}

// Says if the best N is the last one of the sweep, beyond which there may be a better one.
std::string edge_remark(const sim_command& command, const std::vector<sim_row>& rows) {
  auto is_whole
    = [](const sim_row& row) { return !row.report.stalled && !row.experiment.sync.dynamic; };
  if (command.sweep.key != "aggregate" || !command.across.key.empty() || rows.size() < 2
      || !std::ranges::all_of(rows, is_whole))
    return {};
  auto needed = [](const sim_row& row) { return row.experiment.sync.replicas_to_aggregate; };
  auto best = std::ranges::max_element(
    rows, {}, [](const sim_row& row) { return row.report.gradients_per_second(); });
  auto [fewest, most] = std::ranges::minmax(rows, {}, needed);
  auto at_most
    = needed(*best) == needed(most) && needed(most) < best->experiment.sync.total_num_replicas;
  auto at_fewest = needed(*best) == needed(fewest) && needed(fewest) > 1;
  if (!at_most && !at_fewest) return {};
  return fmt::format("most gradients a second: aggregate {}, at the edge of the sweep: {} may give "
                     "more\n",
                     needed(*best), at_most ? "a larger one" : "a smaller one");
}

std::string footer(const std::vector<sim_row>& rows) {
  uint64_t events = 0;
  double wall = 0;
  double virtual_seconds = 0;
  for (const auto& row : rows) {
    events += row.report.events;
    wall += row.report.wall_seconds;
    virtual_seconds += row.report.virtual_seconds;
  }
  return fmt::format(
    "{} events in {:.2f} s, {} a second; {:.0f} virtual seconds\n", readable::count(events), wall,
    readable::count(static_cast<uint64_t>(static_cast<double>(events) / wall)), virtual_seconds);
}

// Says if the steps of a single run depend on each other for long, and its mean is not known well.
std::string dependence_remark(const sim_row& row) {
  constexpr double well = 0.01;
  auto error = error_of(row.report.batches);
  auto stretches = error.freedom + 1;
  if (row.experiment.runs > 1 || !error.is_dependent || stretches >= batch_count / 2
      || row.report.half_width() <= well * row.report.step_time.mean)
    return {};
  return fmt::format("slow periods outlast a twentieth of the run: its interval is that of {} "
                     "independent stretches; raise --steps",
                     stretches);
}

// Says if times have so heavy a tail that means tell little.
std::string_view tail_remark(const sim_row& row) {
  if (!row.experiment.compute.has_mean())
    return "the computing times have no mean: look at the median";
  return has_step_variance(row.experiment)
           ? ""
           : "the step times have no variance: their mean is known worse than its interval says; "
             "look at the median";
}

// Several runs stall at several steps: the seed repeats the one that is told of.
std::string stall_remark(const sim_row& row) {
  const auto& report = row.report;
  auto runs = row.experiment.runs;
  if (runs == 1) return "stalled: " + report.stalled->reason;
  return fmt::format("stalled: {} of {} runs, the first with seed {}: {}", report.stalled_runs,
                     runs, report.stalled_seed, report.stalled->reason);
}

std::string goal_remark(const sim_command& command, const sim_row& row) {
  if (!has_goal(command, row)) return {};
  auto goal = goal_of(command, row);
  return goal ? fmt::format("{:.5g} steps to the goal take {:.5g} s", goal->steps, goal->seconds)
              : goal.error().message;
}

std::string remarks(const sim_command& command, const std::vector<sim_row>& rows) {
  std::string text;
  for (const auto& row : rows) {
    auto name = row_name(command, row);
    auto prefix = name.empty() ? "" : row_column(command) + " " + name + ": ";
    if (row.experiment.sync.dynamic)
      text += fmt::format("{}steps waited for {:.1f} gradients, on average\n", prefix,
                          row.report.mean_needed());
    if (auto remark = goal_remark(command, row); !remark.empty())
      text += fmt::format("{}{}\n", prefix, remark);
    if (row.report.restarts > 0) text += fmt::format("{}{}\n", prefix, restart_text(row.report));
    if (row.report.stalled) text += fmt::format("{}{}\n", prefix, stall_remark(row));
    if (row.report.trace && row.report.trace->is_exceeded)
      text += fmt::format("{}{}\n", prefix, trace_text(*row.report.trace, row.report));
    if (auto remark = dependence_remark(row); !remark.empty())
      text += fmt::format("{}{}\n", prefix, remark);
    if (auto remark = tail_remark(row); !remark.empty())
      text += fmt::format("{}{}\n", prefix, remark);
  }
  return text;
}

// ---- files ----

expected<void> check_json_file(const std::string& file) {
  if (file.empty() || file == "-") return {};
  fs::path path{file};
  std::error_code unknown;
  if (fs::is_directory(path, unknown))
    return fail(errc::resource, fmt::format("--json: {} is a folder; name a file", file));
  if (!fs::exists(path, unknown)) path = path.parent_path() / ".";
  if (::access(path.c_str(), W_OK) == 0) return {};
  return fail(errc::resource,
              fmt::format("--json: cannot write {}: {}", file, std::strerror(errno)));
}

expected<void> make_plots_folder(const std::string& folder) {
  if (folder.empty()) return {};
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem)
    return fail(errc::resource,
                fmt::format("--plots {}: cannot be made: {}", folder, problem.message()));
  if (::access(folder.c_str(), W_OK) == 0) return {};
  return fail(errc::resource,
              fmt::format("--plots {}: cannot write there: {}", folder, std::strerror(errno)));
}

} // namespace

expected<time_to_goal> goal_of(const sim_command& command, const sim_row& row) {
  auto steps = command.iterations.steps(row.report.mean_needed());
  if (!steps) return tl::unexpected<error>(steps.error());
  auto seconds = *steps * row.report.step_time.mean;
  if (std::isfinite(seconds)) return time_to_goal{*steps, seconds};
  return fail(
    errc::limit_exceeded,
    fmt::format("{:.5g} steps to the goal take longer than any number of seconds", *steps));
}

std::string restart_text(const experiment_report& report) {
  return fmt::format("restarted {}: {} made again, and the job waited "
                     "{:.5g} s to be restarted; step times leave both out",
                     report.restarts == 1 ? "once" : fmt::format("{} times", report.restarts),
                     report.undone_steps == 1
                       ? "1 step had to be"
                       : fmt::format("{} steps had to be", report.undone_steps),
                     report.down_seconds);
}

std::string row_name(const sim_command& command, const sim_row& row) {
  return fmt::format("{}", fmt::join(values_of(command, row), ", "));
}

std::string row_column(const sim_command& command) {
  if (command.sweep.key.empty()) return "name";
  return command.across.key.empty() ? command.sweep.key
                                    : command.sweep.key + ", " + command.across.key;
}

std::string trace_text(const trace_use& use, const experiment_report& report) {
  const auto& [file, table] = use.trace;
  auto draws = table->draw_count();
  return fmt::format("{}: {} times of {} replicas; what goes beyond is blocks of {} drawn from "
                     "them by the seed, and "
                     "intervals are those of {:.0f} steps",
                     file, draws, table->seconds.size(), trace_resampling::block_length(draws),
                     static_cast<double>(report.timed_steps) / std::max(1.0, use.repeats));
}

std::string sim_json(const sim_command& command, const std::vector<sim_row>& rows) {
  if (command.sweep.key.empty()) return json_text(row_json(command, rows.front()));
  auto is_grid = !command.across.key.empty();
  json result{{"sweep", command.sweep.key}, {"rows", json::array()}};
  if (is_grid) result["sweep"] = {command.sweep.key, command.across.key};
  for (const auto& row : rows) {
    json entry{{"value", row_name(command, row)}};
    if (is_grid) entry["value"] = values_of(command, row);
    entry.update(row_json(command, row));
    result["rows"].push_back(std::move(entry));
  }
  return json_text(result);
}

std::string sim_table(const sim_command& command, const std::vector<sim_row>& rows) {
  bool swept = !command.sweep.key.empty();
  std::vector<std::vector<std::string>> table;
  std::vector<std::string> heading{"step s", "+-95%",  "p50",       "p90",         "p99",
                                   "max",    "drop %", "updates/s", "gradients/s", "wasted %"};
  auto learns
    = std::ranges::any_of(rows, [](const auto& row) { return row.report.learnt.has_value(); });
  if (learns)
    for (const auto* name : {"loss", "of slow", "of fast", "s to target"})
      heading.emplace_back(name);
  if (swept) {
    if (!command.across.key.empty()) heading.insert(heading.begin(), command.across.key);
    heading.insert(heading.begin(), command.sweep.key);
    heading.push_back(fmt::format("step s - that of {}", row_name(command, rows.front())));
  }
  table.push_back(std::move(heading));
  for (const auto& row : rows) {
    auto cells = cells_of(row);
    if (learns) add_learnt(row, cells);
    if (swept) {
      auto names = values_of(command, row);
      cells.insert(cells.begin(), names.begin(), names.end());
      cells.push_back(difference_text(row));
    }
    table.push_back(std::move(cells));
  }
  return headline(command, rows.front()) + "\n" + table_text(table) + "\n"
         + (rows.size() == 1 ? quantile_line(rows.front()) : "") + edge_remark(command, rows)
         + remarks(command, rows) + footer(rows);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * std::abs(share));
}

json interval_json(const interval_estimate& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}};
}

std::string json_text(const json& report) {
  return report.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

expected<void> check_outputs(const std::string& json_file, const std::string& plots_folder) {
  return check_json_file(json_file).and_then([&] { return make_plots_folder(plots_folder); });
}

expected<void> write_report(const std::string& json_file, const std::string& plots_folder,
                            const report_forms& report) {
  const bool is_json_printed = json_file == "-";
  if (!is_json_printed) fmt::print("{}", report.text());
  if (!plots_folder.empty()) {
    auto lines = report.plots();
    if (!lines) return tl::unexpected<error>(lines.error());
    fmt::print(is_json_printed ? stderr : stdout, "{}", *lines);
  }
  if (is_json_printed) fmt::print("{}", report.json());
  if (is_json_printed || json_file.empty()) return {};
  return replace_file(json_file, report.json()).map_error([](const error& reason) {
    return error{reason.code, "--json: " + reason.message};
  });
}

} // namespace troupe
