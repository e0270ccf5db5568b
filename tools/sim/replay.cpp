// SPDX-License-Identifier: Apache-2.0
// Reading a run's folder, replaying it, and telling how well that went.
#include "tools/sim/replay.hpp"

#include "messages/failure.hpp"
#include "simulation/on_threads.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/help.hpp"
#include "tools/sim/report.hpp"
#include "tools/system/file_content.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <numbers>
#include <thread>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t resampled_runs = 20;
constexpr uint64_t ledger_bytes_max = uint64_t{4} << 30;

// ---- the command line ----

constexpr const char* replay_introduction
  = "Replays a run of troupe train, or of a trainer of your own, in virtual time,\n"
    "from its ledger: once as it was, to see how well that works, and once with a\n"
    "change, to see what it would make.\n"
    "\n"
    "Usage: troupe sim replay RUN_DIR [OPTIONS]\n";

option_value repair_value(std::vector<uint32_t>& place) {
  auto store = [&place](const option_value::text_list& texts) -> expected<void> {
    place.clear();
    if (texts.empty()) return {};
    for (std::string_view text = texts.back(); !text.empty();) {
      auto part = text.substr(0, text.find(','));
      text.remove_prefix(std::min(part.size() + 1, text.size()));
      auto number = number_of<uint32_t>(part);
      if (!number)
        return misuse(
          fmt::format(" takes indices of replicas, such as 7 or 3,7; '{}' is none", part));
      place.push_back(*number);
    }
    return {};
  };
  return unwritten({store, {}});
}

// ---- replaying ----

replayed_steps steps_of(const recorded_run& run, const replay_options& options) {
  auto report = simulate(replay_of(run, options));
  replayed_steps steps{.drop_fraction = report.drop_fraction(),
                       .wasted_replica_seconds
                       = std::chrono::duration<double>(report.wasted).count(),
                       .stalled = report.stalled};
  for (auto time : report.step_times)
    steps.seconds.push_back(std::chrono::duration<double>(time).count());
  return steps;
}

sync_options changed_sync(const run_folder& folder, const replay_command& command) {
  auto sync = folder.sync;
  sync.total_num_replicas
    = static_cast<uint32_t>(command.replicas.value_or(sync.total_num_replicas));
  sync.replicas_to_aggregate
    = static_cast<uint32_t>(command.aggregate.value_or(sync.replicas_to_aggregate));
  sync.policy = command.policy.value_or(sync.policy);
  if (auto valid = sync.validate(); !valid) throw failure{valid.error()};
  return sync;
}

// What other runs that this one might have been make of the change. They differ by chance, and by
// what was estimated of them; a run that is really made differs by chance as much again.
std::optional<interval_estimate> prediction_of(const run_folder& folder,
                                               const replay_options& options, double mean) {
  if (folder.run.step_count() < 2 * resampled_blocks) return std::nullopt;
  std::vector<double> means(resampled_runs);
  for_each_on_threads(means.size(), std::max(1U, std::thread::hardware_concurrency()),
                      [&](size_t i) {
                        auto again = resampled(folder.run, folder.seed + i);
                        means[i] = estimate_of(steps_of(again, options).seconds).mean;
                      });
  auto error = estimate_of(means).standard_error * std::sqrt(static_cast<double>(means.size()));
  if (!std::isfinite(error)) return std::nullopt;
  auto half = student_quantile(resampled_blocks - 1) * std::numbers::sqrt2 * error;
  return interval_estimate{mean, error, std::max(0.0, mean - half), mean + half, means.size()};
}

double difference_of_halves(const std::vector<double>& seconds) {
  auto half = static_cast<ptrdiff_t>(seconds.size() / 2);
  std::vector<double> first{seconds.begin(), seconds.begin() + half};
  std::vector<double> second{seconds.begin() + half, seconds.end()};
  auto whole = estimate_of(seconds).mean;
  return (estimate_of(second).mean - estimate_of(first).mean) / whole;
}

// A prediction in shares of what the recorded steps took.
interval_estimate difference_of(const interval_estimate& prediction, double recorded) {
  auto share = [recorded](double seconds) { return seconds / recorded - 1; };
  return {share(prediction.mean), prediction.standard_error / recorded, share(prediction.low),
          share(prediction.high), prediction.count};
}

// ---- reports ----

// A replay that makes the same steps again proves nothing; one that does not, proves a limit.
constexpr double error_worth_telling = 0.0005;

std::string described(const sync_options& sync) {
  return fmt::format("{} replicas, {} gradients a step, {}", sync.total_num_replicas,
                     sync.replicas_to_aggregate, to_string(sync.policy));
}

std::string figures(const std::vector<double>& seconds) {
  sorted_values sorted{seconds};
  return fmt::format("mean {:#.4g} s, median {:#.4g}, p90 {:#.4g}, longest {:#.4g}",
                     estimate_of(seconds).mean, sorted.quantile(0.5), sorted.quantile(0.9),
                     sorted.quantile(1));
}

std::string share(double value) {
  return fmt::format("{:.1f} %", 100 * std::abs(value));
}

std::string difference_text(const interval_estimate& difference) {
  if (difference.low <= 0 && difference.high >= 0)
    return fmt::format(
      "no difference that could be told from chance: {:+.1f} % [{:+.1f} %, {:+.1f} "
      "%]",
      100 * difference.mean, 100 * difference.low, 100 * difference.high);
  auto less = difference.mean < 0;
  auto ends = std::minmax({std::abs(difference.low), std::abs(difference.high)});
  return fmt::format("a step takes {} {} [{} to {}]", share(difference.mean),
                     less ? "less" : "longer", share(ends.first), share(ends.second));
}

json steps_json(const std::vector<double>& seconds) {
  sorted_values sorted{seconds};
  return {{"steps", seconds.size()},
          {"mean", estimate_of(seconds).mean},
          {"p50", sorted.quantile(0.5)},
          {"p90", sorted.quantile(0.9)},
          {"max", sorted.quantile(1)}};
}

json sync_json(const sync_options& sync) {
  return {{"replicas", sync.total_num_replicas},
          {"aggregate", sync.replicas_to_aggregate},
          {"policy", to_string(sync.policy)}};
}

// What is estimated of gradients that were told to stop, and what cannot be known of them.
std::string cut_text(const replay_report& report) {
  const auto& cut = report.cut;
  if (cut.cut == 0) return {};
  auto text
    = fmt::format("note       {} of {} gradients were told to stop; how long they would have "
                  "taken is estimated (Kaplan and Meier)\n",
                  cut.cut, cut.gradients);
  if (report.at_least)
    text += fmt::format("           {} of them take longer than any that replicas like theirs "
                        "completed: if no longer than that, a step takes {:#.4g} s\n",
                        cut.beyond, *report.at_least);
  for (auto replica : cut.unknown)
    text += fmt::format("           replica {} was hardly ever completed, so nothing says how long "
                        "it takes\n",
                        replica);
  return text;
}

json cut_json(const cut_estimate& cut) {
  return {{"cut", cut.cut},
          {"beyond", cut.beyond},
          {"longest_completed", std::chrono::duration<double>(cut.longest).count()},
          {"unknown_replicas", cut.unknown}};
}

json interval_json(const interval_estimate& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}};
}

expected<void> write(const replay_command& command, const run_folder& folder,
                     const replay_report& report) {
  if (command.json != "-") fmt::print("{}", replay_text(command, folder, report));
  if (command.json.empty()) return {};
  return write_json(command.json, replay_json(command, report));
}

} // namespace

expected<replay_command> parse_replay_options(int argument_count, const char* const* arguments) {
  constexpr option_range replica_counts{1, 1e6};
  replay_command command;
  command_options all{replay_introduction, "values follow their option, as in --aggregate 3",
                      "\n" + exit_codes_text()};
  all.add("run", "", "", text_value(command.run_dir));
  all.add("--replicas", "N",
          "how many replicas; those that are added take as long as a typical one",
          whole_value(command.replicas, replica_counts), "as it was");
  all.add("--aggregate", "N", "gradients that a step needs",
          whole_value(command.aggregate, replica_counts), "as it was");
  all.add("--policy", "NAME", names_of(policies_that(&policy_traits::is_synchronous)),
          parsed_value(command.policy, parse_sync_policy), "as it was");
  all.add("--repair", "N,N,...", "replicas that take as long as a typical one",
          repair_value(command.repaired), "none");
  all.add("--json", "FILE", "write the report to a file; to standard output for -",
          text_value(command.json));
  all.add_help();
  auto answer = all.read(argument_count, arguments);
  if (!answer) return tl::unexpected(answer.error());
  command.answer = *answer;
  if (!command.answer.empty() || !command.run_dir.empty()) return command;
  return misuse("which run? Give its folder: troupe sim replay runs/NAME");
}

std::string option_text(const replay_command& command) {
  std::vector<std::string> words;
  if (command.replicas) words.push_back(fmt::format("--replicas {}", *command.replicas));
  if (command.aggregate) words.push_back(fmt::format("--aggregate {}", *command.aggregate));
  if (command.policy) words.push_back(fmt::format("--policy {}", to_string(*command.policy)));
  if (!command.repaired.empty())
    words.push_back(fmt::format("--repair {}", fmt::join(command.repaired, ",")));
  return fmt::format("{}", fmt::join(words, " "));
}

expected<job_options> read_run_options(const std::string& path) {
  job_options options;
  command_options all;
  add_options(all, options);
  auto config_path = (std::filesystem::path{path} / "config.toml").string();
  if (std::error_code unknown; !std::filesystem::exists(config_path, unknown))
    return fail(errc::not_found,
                fmt::format("not the folder of a run: there is no {}", config_path));
  auto config = read_known_options(config_path, "--config", all);
  if (!config)
    return fail(config.error().code,
                fmt::format("not the folder of a run: {}", config.error().message));
  return options;
}

expected<run_folder> run_of(const job_options& options, std::string_view ledger,
                            const std::string& name) {
  auto run = read_ledger(ledger, name);
  if (!run) return tl::unexpected<error>(run.error());
  auto replicas = static_cast<uint32_t>(options.replicas);
  if (run->times.size() > replicas)
    return fail(errc::malformed, fmt::format("{}: tells of replica {}, but the run had {}", name,
                                             run->times.size() - 1, replicas));
  run->set_replica_count(replicas);
  if (options.backups == backup_kind::dynamic) {
    return fail(errc::failed_precondition,
                fmt::format("{}: that run chose its number of backups anew for every step, by what "
                            "its gradients were; no ledger tells of that",
                            name));
  }
  return run_folder{std::move(*run), sync_of(options), options.seed};
}

expected<run_folder> read_run_folder(const std::string& path) {
  auto options = read_run_options(path);
  if (!options) return tl::unexpected<error>(options.error());
  auto ledger = (std::filesystem::path{path} / "ledger.csv").string();
  auto text = file_content(ledger, ledger_bytes_max);
  if (!text) return tl::unexpected<error>(text.error());
  return run_of(*options, *text, ledger);
}

replay_report replay(const run_folder& folder, const replay_command& command) {
  replay_report report{.recorded_sync = folder.sync,
                       .changed_sync = changed_sync(folder, command),
                       .recorded = folder.run.step_seconds()};
  report.unchanged = steps_of(folder.run, {.sync = folder.sync, .seed = folder.seed});
  if (report.unchanged.seconds.empty()) {
    auto why = report.unchanged.stalled ? report.unchanged.stalled->reason : "it has no steps";
    throw failure{{errc::stalled, fmt::format("{}: the ledger does not say enough to replay a "
                                              "single step: {}",
                                              command.run_dir, why)}};
  }
  report.error = error_of(report.recorded, report.unchanged.seconds);
  report.halves = difference_of_halves(report.recorded);
  if (!command.has_change()) return report;
  replay_options options{
    .sync = report.changed_sync, .repaired = command.repaired, .seed = folder.seed};
  report.changed = steps_of(folder.run, options);
  if (report.changed->seconds.empty()) return report;
  auto mean = estimate_of(report.changed->seconds).mean;
  report.cut = cut_estimate_of(folder.run, options);
  const auto& sync = report.changed_sync;
  report.is_lower_bound
    = sync.replicas_to_aggregate + report.cut.unknown.size() > sync.total_num_replicas;
  if (!report.is_lower_bound) report.prediction = prediction_of(folder, options, mean);
  if (report.cut.beyond == 0) return report;
  options.no_longer_than_seen = true;
  report.at_least = estimate_of(steps_of(folder.run, options).seconds).mean;
  return report;
}

std::string replay_text(const replay_command& command, const run_folder& folder,
                        const replay_report& report) {
  auto text = fmt::format("recorded   {}: {} steps, {}\n"
                          "           {}\n",
                          command.run_dir, report.recorded.size(), described(report.recorded_sync),
                          figures(report.recorded));
  if (report.recorded.size() > 1)
    text += fmt::format("           the mean step of its second half is {:+.1f} % that of the "
                        "first: so much runs differ at least\n",
                        100 * report.halves);
  text += fmt::format("replayed   as it was: {}\n", figures(report.unchanged.seconds));
  if (std::abs(report.error.mean_step) >= error_worth_telling)
    text += fmt::format("           off by {:+.1f} % in the mean; of single steps by {} in the "
                        "median, {} at p90: predictions are no better\n",
                        100 * report.error.mean_step, share(report.error.median),
                        share(report.error.p90));
  if (report.changed) {
    text
      += fmt::format("with       {}: {}\n", option_text(command), described(report.changed_sync));
    if (!report.changed->seconds.empty())
      text += fmt::format("           {}\n", figures(report.changed->seconds));
    if (report.prediction) {
      const auto& [mean, error, low, high, count] = *report.prediction;
      auto recorded = estimate_of(report.recorded).mean;
      text
        += fmt::format("so         {}\n"
                       "           in 95 of 100 cases, another run with that change takes {:#.4g} "
                       "to {:#.4g} s a step on average\n",
                       difference_text(difference_of(*report.prediction, recorded)), low, high);
    }
    if (report.is_lower_bound)
      text += "so         a step takes at least this long; how much longer, the run does not say\n";
    if (report.changed->stalled)
      text += fmt::format("stalled    {}\n", report.changed->stalled->reason);
    text += cut_text(report);
  }
  if (folder.run.first_step > 0) {
    text += fmt::format("note       the run was resumed after step {}: what was on its way then, "
                        "nobody knows\n",
                        folder.run.first_step);
  }
  return text;
}

std::string replay_json(const replay_command& command, const replay_report& report) {
  json result{{"run", command.run_dir},
              {"recorded", steps_json(report.recorded)},
              {"unchanged", steps_json(report.unchanged.seconds)},
              {"error",
               {{"mean_step", report.error.mean_step},
                {"step_p50", report.error.median},
                {"step_p90", report.error.p90}}},
              {"halves", report.halves},
              {"changed", nullptr},
              {"prediction", nullptr},
              {"difference", nullptr},
              {"at_least", nullptr},
              {"cut", nullptr},
              {"stalled", nullptr}};
  result["recorded"].update(sync_json(report.recorded_sync));
  if (!report.changed) return result.dump(2) + "\n";
  result["changed"] = steps_json(report.changed->seconds);
  result["changed"].update(sync_json(report.changed_sync));
  result["changed"]["repaired"] = command.repaired;
  if (report.prediction) {
    auto recorded = estimate_of(report.recorded).mean;
    result["prediction"] = interval_json(*report.prediction);
    result["difference"] = interval_json(difference_of(*report.prediction, recorded));
  }
  if (report.at_least) result["at_least"] = *report.at_least;
  result["is_lower_bound"] = report.is_lower_bound;
  result["cut"] = cut_json(report.cut);
  if (report.changed->stalled) result["stalled"] = report.changed->stalled->reason;
  return result.dump(2) + "\n";
}

int replay_command_main(int argument_count, const char* const* arguments) {
  auto command = parse_replay_options(argument_count, arguments);
  if (auto code = answered("troupe sim replay", command)) return *code;
  auto folder = read_run_folder(command->run_dir);
  if (!folder) return refuse("troupe sim replay", folder.error());
  if (auto place = check_json(command->json); !place)
    return refuse("troupe sim replay", place.error());
  try {
    auto report = replay(*folder, *command);
    if (auto written = write(*command, *folder, report); !written)
      return refuse("troupe sim replay", written.error(), exit_code::user_error);
    auto stalled = report.changed && report.changed->stalled;
    return static_cast<int>(stalled ? exit_code::stalled : exit_code::finished);
  } catch (const failure& failed) {
    return refuse("troupe sim replay", failed.reason());
  }
}

} // namespace troupe
