// SPDX-License-Identifier: Apache-2.0
// Reads options and the checkpoints of a run, draws failures, and reports useful work.
#include "tools/sim/goodput.hpp"

#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/help.hpp"
#include "tools/options/job_options.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/sim/plots/goodput_plot.hpp"
#include "tools/sim/plots/sim_plots.hpp"
#include "tools/sim/report.hpp"
#include "tools/system/file_content.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

constexpr double hour = 3600;
constexpr double day = 24 * hour;
constexpr double failures_max = 2e7; // drawn for one row
constexpr uint64_t metrics_bytes_max = uint64_t{1} << 30;

constexpr const char* goodput_introduction
  = "Says how much of a week is useful work if nodes fail: what is computed since the\n"
    "last checkpoint is lost, and a job of more nodes stops more often. Backups take\n"
    "the place of nodes that fail; the job stops only if more are down than there are.\n"
    "\n"
    "Usage: troupe sim goodput [OPTIONS]\n";

constexpr option_range seconds_range{0, 1e7};

// ---- the checkpoints of a run ----

/// The columns `step` and `seconds` of metrics.csv.
struct recorded_step {
  uint64_t step = 0;
  double seconds = 0;
};

expected<std::vector<recorded_step>> read_steps(const std::string& path) {
  auto text = file_content(path, metrics_bytes_max);
  if (!text) return tl::unexpected<error>(text.error());
  std::vector<recorded_step> steps;
  std::string_view rest = *text;
  for (size_t number = 1; rest.find('\n') != std::string_view::npos; ++number) {
    auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    if (number == 1) continue;
    auto first = line.find(',');
    auto second = first == std::string_view::npos ? first : line.find(',', first + 1);
    auto step = number_of<uint64_t>(line.substr(0, first));
    auto seconds = second == std::string_view::npos
                     ? std::nullopt
                     : number_of<double>(line.substr(first + 1, second - first - 1));
    if (!step || !seconds || !std::isfinite(*seconds))
      return fail(errc::malformed, fmt::format("{}:{}: not a line of metrics.csv", path, number));
    steps.push_back({*step, *seconds});
  }
  return steps;
}

double median_of(std::vector<double> values) {
  return sorted_values{std::move(values)}.quantile(0.5);
}

/// The checkpoints of a run of `troupe train`.
struct recorded_checkpoints {
  double every = 0; ///< Seconds of work between two, on average.
  double cost = 0;  ///< By how much the step after one takes longer than others, in the median.
};

// Errors: failed_precondition if the run is too short to have a checkpoint with steps behind it.
expected<recorded_checkpoints> read_checkpoints(const std::string& run_dir) {
  const auto run = run_directory::at(run_dir);
  job_options options;
  command_options all;
  add_options(all, options);
  auto config = read_known_options(run.config().string(), "--run", all);
  if (!config) return tl::unexpected<error>(config.error());
  auto path = run.metrics().string();
  auto steps = read_steps(path);
  if (!steps) return tl::unexpected<error>(steps.error());
  std::vector<double> behind_checkpoints;
  std::vector<double> other_steps;
  for (size_t i = 1; i < steps->size(); ++i) {
    auto before = (*steps)[i - 1];
    auto is_behind = options.checkpoint_every > 0 && before.step % options.checkpoint_every == 0;
    (is_behind ? behind_checkpoints : other_steps).push_back((*steps)[i].seconds - before.seconds);
  }
  if (behind_checkpoints.empty() || other_steps.empty())
    return fail(errc::failed_precondition,
                fmt::format("--run: {} has no step behind a checkpoint; give --checkpoint-cost and "
                            "--checkpoint-every instead",
                            path));
  auto usual = median_of(other_steps);
  if (!(usual > 0))
    return fail(errc::failed_precondition,
                fmt::format("--run: the steps of {} take no time; give --checkpoint-cost and "
                            "--checkpoint-every instead",
                            path));
  return recorded_checkpoints{.every = usual * static_cast<double>(options.checkpoint_every),
                              .cost = std::max(0.0, median_of(behind_checkpoints) - usual)};
}

// ---- the report ----

// "-" if there was no stop.
std::string if_stopped(const goodput_row& row, double value, int digits) {
  return row.stops > 0 ? fmt::format("{:.{}f}", value, digits) : "-";
}

std::string row_text(const goodput_row& row, double days) {
  return fmt::format(
    "{:>7.0f} {:>8} {:>8.2f} {:>10} {:>11.0f} {:>8} {:>8} {:>9.1f} {:>9.2f} {:>9} {:>9.2f}\n",
    row.model.nodes, row.model.backups, row.stops, if_stopped(row, row.mean_time / hour, 2),
    row.interval, if_stopped(row, row.young, 0), if_stopped(row, row.daly, 0),
    row.useful * days * 24, 100 * row.useful,
    row.closed_form ? fmt::format("{:.2f}", 100 * *row.closed_form) : "-",
    100 * row.useful_of_all());
}

// The worth of backups for one number of nodes. @param rows The rows of that number.
std::string comparison(std::span<const goodput_row> rows) {
  const auto& none
    = *std::ranges::min_element(rows, {}, [](const goodput_row& row) { return row.model.backups; });
  const auto& best = *std::ranges::max_element(rows, {}, &goodput_row::useful_of_all);
  if (none.model.backups > 0 || rows.size() < 2) return {};
  if (best.model.backups == 0)
    return fmt::format("{:.0f} nodes: restarts alone give most useful work for each node\n",
                       none.model.nodes);
  auto most = std::ranges::max(rows, {}, [](const goodput_row& row) { return row.model.backups; });
  return fmt::format(
    "{:.0f} nodes: {} backup{} give{} {:.2f} % more useful work for each node than "
    "restarts alone{}\n",
    none.model.nodes, best.model.backups, best.model.backups == 1 ? "" : "s",
    best.model.backups == 1 ? "s" : "", 100 * (best.useful_of_all() / none.useful_of_all() - 1),
    best.model.backups == most.model.backups ? "; more were not tried" : "");
}

std::string comparisons(std::span<const goodput_row> rows) {
  std::string text;
  while (!rows.empty()) {
    auto is_other = [&](const goodput_row& row) { return row.model.nodes != rows[0].model.nodes; };
    auto count = static_cast<size_t>(std::ranges::find_if(rows, is_other) - rows.begin());
    text += comparison(rows.first(count));
    rows = rows.subspan(count);
  }
  return text;
}

std::string goodput_text(const goodput_command& command, const std::vector<goodput_row>& rows) {
  auto text
    = fmt::format("{:g} days; a node fails every {:g} h and is back after {:g} s; a stop "
                  "is detected after {:g} s, a restart takes {:g} s, a checkpoint {:.4g} s\n"
                  "\n"
                  "  nodes  backups    stops  stopped h  interval s  Young s   Daly s  "
                  "useful h  useful %    Daly %  of all %\n",
                  command.days, command.mtbf_hours, command.node_return, command.detection,
                  command.restart, command.checkpoint_cost);
  for (const auto& row : rows)
    text += row_text(row, command.days);
  return text
         + "\n"
           "stopped h: work until a stop, on average. Useful is work that was not lost and is no "
           "checkpoint; of\n"
           "all: over the time of all nodes, backups included. Daly %: what his closed form says "
           "of this interval.\n"
         + comparisons(rows);
}

std::string goodput_json(const goodput_command& command, const std::vector<goodput_row>& rows) {
  json result{{"days", command.days},
              {"mtbf_hours", command.mtbf_hours},
              {"node_return", command.node_return},
              {"detection", command.detection},
              {"restart", command.restart},
              {"checkpoint_cost", command.checkpoint_cost},
              {"seed", command.seed},
              {"rows", json::array()}};
  for (const auto& row : rows) {
    json entry{{"nodes", row.model.nodes},
               {"backups", row.model.backups},
               {"stops", row.stops},
               {"seconds_to_stop", nullptr},
               {"interval", row.interval},
               {"young_interval", nullptr},
               {"daly_interval", nullptr},
               {"useful", row.useful},
               {"useful_of_all", row.useful_of_all()},
               {"closed_form", nullptr}};
    if (row.stops > 0) {
      entry["seconds_to_stop"] = row.mean_time;
      entry["young_interval"] = row.young;
      entry["daly_interval"] = row.daly;
    }
    if (row.closed_form) entry["closed_form"] = *row.closed_form;
    result["rows"].push_back(std::move(entry));
  }
  return json_text(result);
}

expected<void> write(const goodput_command& command, const std::vector<goodput_row>& rows) {
  return write_report(
    command.json, command.plots,
    {.text = [&] { return goodput_text(command, rows); },
     .json = [&] { return goodput_json(command, rows); },
     .plots = [&] { return write_plots(command.plots, {goodput_plot(command, rows)}); }});
}

// ---- the command line ----

expected<goodput_command> parse_goodput_options(int argument_count, const char* const* arguments) {
  goodput_command command;
  std::optional<double> cost;
  command_options all{goodput_introduction, "values follow their option, as in --mtbf 50000",
                      "\n" + sim_exit_codes_text(false)};
  all.add("--nodes", "N,N,...", "how many nodes the job needs",
          whole_numbers_value(command.nodes, {1, 1e6}));
  all.add("--backups", "N,N,...", "how many compute beside them",
          whole_numbers_value(command.backups, {0, 1e5}));
  all.add("--mtbf", "HOURS", "mean time between failures of one node",
          real_value(command.mtbf_hours, above(0, 1e9)));
  all.add("--return", "SECONDS",
          "after how long a node that failed computes again, if it is a backup",
          real_value(command.node_return, seconds_range));
  all.add("--detection", "SECONDS", "from a failure until the job knows of it",
          real_value(command.detection, seconds_range));
  all.add("--restart", "SECONDS", "from there until the job works again",
          real_value(command.restart, seconds_range));
  all.add("--checkpoint-cost", "SECONDS", "for how long the job stands still for a checkpoint",
          real_value(cost, seconds_range), "30, or as in the run of --run");
  all.add("--checkpoint-every", "SECONDS", "work between two checkpoints",
          real_value(command.checkpoint_every, above(0, 1e9)),
          "the best for each row, or as in the run of --run");
  all.add("--run", "DIR", "take cost and interval of checkpoints from a run of troupe train",
          text_value(command.run_dir));
  all.add("--days", "DAYS", "how long the job is looked at",
          real_value(command.days, above(0, 1e5)));
  all.add("--runs", "N", "how many times, each with other failures",
          whole_value(command.runs, {1, 1e6}));
  all.add("--seed", "N", "of all draws", whole_value(command.seed, {0, 1e15}));
  all.add("--plots", "DIR", "draw useful work by backups, with the numbers beside it",
          text_value(command.plots));
  all.add("--json", "FILE", "write the report to a file; to standard output for -",
          text_value(command.json));
  all.add_help(command.answer);
  if (auto done = all.read(argument_count, arguments); !done) return tl::unexpected(done.error());
  if (!command.answer.empty()) return command;
  if (!command.run_dir.empty()) {
    auto recorded = read_checkpoints(command.run_dir);
    if (!recorded) return tl::unexpected<error>(recorded.error());
    if (!command.checkpoint_every) command.checkpoint_every = recorded->every;
    command.checkpoint_cost = recorded->cost;
  }
  command.checkpoint_cost = cost.value_or(command.checkpoint_cost);
  std::ranges::sort(command.nodes);
  std::ranges::sort(command.backups);
  auto most_nodes = static_cast<double>(command.nodes.back() + command.backups.back());
  return check_mtbf(most_nodes, command.mtbf_hours, command.days).map([&] { return command; });
}

} // namespace

expected<void> check_mtbf(double nodes, double mtbf_hours, double days) {
  if (nodes * days * day / (mtbf_hours * hour) <= failures_max) return {};
  return misuse(fmt::format("--mtbf: {:.0f} nodes that fail every {:g} h fail more than {:g} times "
                            "in {:g} days; no job comes to work there, give more hours",
                            nodes, mtbf_hours, failures_max, days));
}

uint64_t affordable_runs(const goodput_command& command, const failure_model& model) {
  auto failures = (model.nodes + model.backups) * command.days * day / model.node_mtbf;
  auto runs_max = std::max(1.0, failures_max / std::max(1.0, failures));
  return std::min(command.runs, static_cast<uint64_t>(std::min(runs_max, 1e9)));
}

failure_model goodput_command::model(double needed, uint32_t backup_count) const {
  return {.nodes = needed,
          .backups = backup_count,
          .node_mtbf = mtbf_hours * hour,
          .node_return = node_return,
          .detection = detection,
          .restart = restart,
          .checkpoint_cost = checkpoint_cost};
}

goodput_row goodput_row_of(const failure_model& model, std::optional<double> interval,
                           double horizon, uint64_t runs, uint64_t seed) {
  auto history = draw_failures(model, horizon, runs, seed);
  goodput_row row{.model = model, .mean_time = mean_time_to_stop(history)};
  row.stops
    = static_cast<double>(std::ranges::count(history.ended, true)) / static_cast<double>(runs);
  row.young = young_interval(model.checkpoint_cost, row.mean_time);
  row.daly = daly_interval(model.checkpoint_cost, row.mean_time);
  row.interval = interval ? *interval : best_interval(history, model.checkpoint_cost);
  row.useful = goodput_of(history, model.checkpoint_cost, row.interval);
  if (model.backups == 0) row.closed_form = daly_goodput(model, row.interval);
  return row;
}

std::vector<goodput_row> goodput_rows(const goodput_command& command) {
  std::vector<goodput_row> rows;
  for (auto nodes : command.nodes)
    for (auto backups : command.backups) {
      auto model = command.model(static_cast<double>(nodes), static_cast<uint32_t>(backups));
      rows.push_back(goodput_row_of(model, command.checkpoint_every, command.days * day,
                                    affordable_runs(command, model), command.seed));
    }
  return rows;
}

int goodput_command_main(int argument_count, const char* const* arguments) {
  auto command = parse_goodput_options(argument_count, arguments);
  if (auto code = answered("troupe sim goodput", command)) return *code;
  if (auto outputs = check_outputs(command->json, command->plots); !outputs)
    return refuse("troupe sim goodput", outputs.error());
  if (auto written = write(*command, goodput_rows(*command)); !written)
    return refuse("troupe sim goodput", written.error(), exit_code::user_error);
  return static_cast<int>(exit_code::finished);
}

} // namespace troupe
