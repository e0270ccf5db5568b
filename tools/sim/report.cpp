// SPDX-License-Identifier: Apache-2.0
// Printing what was simulated.
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
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

// ---- for programs ----

// A fault, by the keys of a scenario file.
json planned_json(const fault& one) {
  json result{{"kind", to_string(one.kind)},
              {"at", seconds(one.at)},
              {"for", seconds(one.lasts)},
              {"who", one.who}};
  switch (one.kind) {
  case fault_kind::partition:
    result["other"] = one.other;
    result["one_way"] = one.one_way;
    break;
  case fault_kind::slow:
    result["factor"] = one.factor;
    break;
  case fault_kind::skew:
    result["ahead"] = seconds(one.ahead);
    result["rate"] = one.rate;
    break;
  case fault_kind::messages:
    result["message"] = one.message;
    result["lost"] = one.probabilities.lost;
    result["doubled"] = one.probabilities.duplicated;
    result["late"] = one.probabilities.reordered;
    break;
  case fault_kind::corrupt:
    result["how"] = one.how == corruption::wrong_shape ? "shape" : "nan";
    break;
  case fault_kind::crash:
  case fault_kind::crash_with_token:
  case fault_kind::freeze:
  case fault_kind::swizzle:
    break;
  }
  return result;
}

json planned_json(const std::vector<fault>& faults) {
  json result = json::array();
  for (const auto& one : faults)
    result.push_back(planned_json(one));
  return result;
}

json scenario_json(const sim_row& row) {
  const auto& sync = row.what.sync;
  json result{{"replicas", sync.total_num_replicas},
              {"aggregate", sync.replicas_to_aggregate},
              {"dynamic", sync.dynamic.has_value()},
              {"policy", row.options.policy},
              {"distinct", sync.one_gradient_per_replica},
              {"slack", sync.slack},
              {"local_steps", row.what.local_sgd.local_steps},
              {"averaging_time", seconds(row.what.local_sgd.averaging_time)},
              {"initial_tokens", sync.first_tokens()},
              {"dead", row.what.dead},
              {"compute", row.what.compute.text()},
              {"compute_mean", nullptr},
              {"steps", row.what.steps},
              {"warm_up", row.what.warm_up},
              {"runs", row.what.runs}};
  if (auto mean = row.what.compute.mean(); mean && std::isfinite(*mean))
    result["compute_mean"] = *mean;
  // The other options, as they were given.
  for (auto& [name, value] : option_texts(row.options)) {
    std::ranges::replace(name, '-', '_');
    if (name != "seed" && name != "threads" && name != "engine" && !result.contains(name))
      result[name] = value;
  }
  if (!row.options.fault_list.empty()) result["fault"] = planned_json(row.options.fault_list);
  return result;
}

json stall_json(const stall_report& stalled) {
  json result{{"step", stalled.step},
              {"live", stalled.live},
              {"needed", stalled.needed},
              {"tokens", nullptr},
              {"reason", stalled.reason}};
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

// Null for a number that does not exist.
json existing(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}

json range_json(const quantile_range& range) {
  return {existing(range.low), existing(range.high)};
}

json learning_json(const learning_figures& learnt, const experiment& what) {
  json curve = json::array();
  for (const auto& point : learnt.curve)
    curve.push_back({{"step", point.step},
                     {"seconds", point.seconds},
                     {"loss", existing(point.loss)},
                     {"slow_loss", existing(point.slow_loss)},
                     {"fast_loss", existing(point.fast_loss)}});
  return {{"loss", existing(learnt.loss)},
          {"slow_loss", existing(learnt.slow_loss)},
          {"fast_loss", existing(learnt.fast_loss)},
          {"target_loss", existing(what.target_loss)},
          {"seconds_to_target", existing(learnt.seconds_to_target)},
          {"curve", std::move(curve)}};
}

json trace_json(const trace_use& use) {
  auto draws = use.trace.table->draw_count();
  return {{"file", use.trace.file}, {"replicas", use.trace.table->seconds.size()},
          {"draws", draws},         {"block", trace_resampling::block_length(draws)},
          {"repeats", use.repeats}, {"is_exceeded", use.is_exceeded}};
}

json row_json(const sim_row& row) {
  const auto& report = row.report;
  const auto& time = report.step_time;
  json result{
    {"scenario", scenario_json(row)},
    {"seed", row.what.seed},
    {"step_time",
     {{"mean", time.mean},
      {"standard_error", time.standard_error},
      {"p50", time.p50},
      {"p90", time.p90},
      {"p99", time.p99},
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
    {"learning", nullptr},
    {"stalled", nullptr},
    {"difference", nullptr}};
  if (report.trace) result["trace"] = trace_json(*report.trace);
  if (report.learnt) result["learning"] = learning_json(*report.learnt, row.what);
  if (report.stalled) result["stalled"] = stall_json(*report.stalled);
  if (row.difference) result["difference"] = difference_json(*row.difference);
  return result;
}

// ---- for people ----

/// Cells in columns that are as wide as they must be.
class table {
public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  [[nodiscard]] std::string text() const {
    std::vector<size_t> widths;
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) {
        widths.resize(std::max(widths.size(), i + 1));
        widths[i] = std::max(widths[i], row[i].size());
      }
    std::string text;
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i)
        text += fmt::format("{}{:>{}}", i == 0 ? "" : "  ", row[i], widths[i]);
      text += '\n';
    }
    return text;
  }

private:
  std::vector<std::vector<std::string>> rows_;
};

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:#.5g}", value) : "-";
}

// Where quantiles lie in 95 of 100 cases; "-": too few steps to tell.
std::string quantile_line(const sim_row& row) {
  const auto& time = row.report.step_time;
  if (std::isnan(row.report.half_width())) return {};
  auto one = [](std::string_view name, double value, const quantile_range& range) {
    return fmt::format("{} {} [{}, {}]", name, number(value), number(range.low),
                       number(range.high));
  };
  return fmt::format("in 95 of 100 cases: {}, {}, {}\n", one("p50", time.p50, time.p50_range),
                     one("p90", time.p90, time.p90_range), one("p99", time.p99, time.p99_range));
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

// Only where a row of the table has learnt something.
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

// The values that tell this row from the others: one of each swept option.
std::vector<std::string> values_of(const sim_command& command, const sim_row& row) {
  std::vector<std::string> values;
  for (const auto& key : {command.sweep.key, command.across.key})
    if (!key.empty()) values.push_back(value_text(key, row.options));
  return values;
}

// Beyond the last N that was tried, there may be a better one. @returns A line, or nothing.
std::string edge_remark(const sim_command& command, const std::vector<sim_row>& rows) {
  auto is_whole = [](const sim_row& row) { return !row.report.stalled && !row.what.sync.dynamic; };
  if (command.sweep.key != "aggregate" || !command.across.key.empty() || rows.size() < 2
      || !std::ranges::all_of(rows, is_whole))
    return {};
  auto needed = [](const sim_row& row) { return row.what.sync.replicas_to_aggregate; };
  auto best = std::ranges::max_element(
    rows, {}, [](const sim_row& row) { return row.report.gradients_per_second(); });
  auto [fewest, most] = std::ranges::minmax(rows, {}, needed);
  auto at_most = needed(*best) == needed(most) && needed(most) < best->what.sync.total_num_replicas;
  auto at_fewest = needed(*best) == needed(fewest) && needed(fewest) > 1;
  if (!at_most && !at_fewest) return {};
  return fmt::format("most gradients a second: aggregate {}, at the edge of the sweep: {} may give "
                     "more\n",
                     needed(*best), at_most ? "a larger one" : "a smaller one");
}

std::string footline(const std::vector<sim_row>& rows) {
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

// A single run whose steps depend on each other for long, and whose mean is not known well.
std::string dependence_remark(const sim_row& row) {
  constexpr double well = 0.01;
  auto error = error_of(row.report.batches);
  auto stretches = error.freedom + 1;
  if (row.what.runs > 1 || !error.is_dependent || stretches >= batch_count / 2
      || row.report.half_width() <= well * row.report.step_time.mean)
    return {};
  return fmt::format("slow periods outlast a twentieth of the run: its interval is that of {} "
                     "independent stretches; raise --steps",
                     stretches);
}

std::string remarks(const sim_command& command, const std::vector<sim_row>& rows) {
  std::string text;
  for (const auto& row : rows) {
    auto name = row_name(command, row);
    auto prefix = name.empty() ? "" : row_column(command) + " " + name + ": ";
    if (row.what.sync.dynamic)
      text += fmt::format("{}steps waited for {:.1f} gradients, on average\n", prefix,
                          row.report.mean_needed());
    if (row.report.stalled)
      text += fmt::format("{}stalled: {}\n", prefix, row.report.stalled->reason);
    if (row.report.trace && row.report.trace->is_exceeded)
      text += fmt::format("{}{}\n", prefix, trace_text(*row.report.trace, row.report));
    if (auto remark = dependence_remark(row); !remark.empty())
      text += fmt::format("{}{}\n", prefix, remark);
    if (auto mean = row.what.compute.mean(); mean && std::isinf(*mean))
      text += fmt::format("{}the computing times have no mean: look at the median\n", prefix);
  }
  return text;
}

} // namespace

std::string row_name(const sim_command& command, const sim_row& row) {
  std::string name;
  for (auto& value : values_of(command, row))
    name += (name.empty() ? "" : ", ") + value;
  return name;
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
  if (command.sweep.key.empty()) return json_text(row_json(rows.front()));
  auto is_grid = !command.across.key.empty();
  json result{{"sweep", command.sweep.key}, {"rows", json::array()}};
  if (is_grid) result["sweep"] = {command.sweep.key, command.across.key};
  for (const auto& row : rows) {
    json of_row{{"value", row_name(command, row)}};
    if (is_grid) of_row["value"] = values_of(command, row);
    of_row.update(row_json(row));
    result["rows"].push_back(std::move(of_row));
  }
  return json_text(result);
}

std::string json_text(const json& report) {
  return report.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

expected<void> check_json(const std::string& file) {
  if (file.empty() || file == "-") return {};
  std::filesystem::path path{file};
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown))
    return fail(errc::resource, fmt::format("--json: {} is a folder; name a file", file));
  if (!std::filesystem::exists(path, unknown)) path = path.parent_path() / ".";
  if (::access(path.c_str(), W_OK) == 0) return {};
  return fail(errc::resource,
              fmt::format("--json: cannot write {}: {}", file, std::strerror(errno)));
}

expected<void> write_json(const std::string& file, const std::string& report) {
  if (file == "-") {
    fmt::print("{}", report);
    return {};
  }
  return replace_file(file, report).map_error([](const error& reason) {
    return error{reason.code, "--json: " + reason.message};
  });
}

std::string sim_table(const sim_command& command, const std::vector<sim_row>& rows) {
  bool swept = !command.sweep.key.empty();
  table lines;
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
  lines.add(std::move(heading));
  for (const auto& row : rows) {
    auto cells = cells_of(row);
    if (learns) add_learnt(row, cells);
    if (swept) {
      auto names = values_of(command, row);
      cells.insert(cells.begin(), names.begin(), names.end());
      cells.push_back(difference_text(row));
    }
    lines.add(std::move(cells));
  }
  return headline(command, rows.front()) + "\n" + lines.text() + "\n"
         + (rows.size() == 1 ? quantile_line(rows.front()) : "") + edge_remark(command, rows)
         + remarks(command, rows) + footline(rows);
}

} // namespace troupe
