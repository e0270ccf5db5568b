// SPDX-License-Identifier: Apache-2.0
// Reads the command line, and reports a replay in words and as JSON.
#include "tools/sim/replay.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/failure.hpp"
#include "messages/text.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/command_options.hpp"
#include "tools/options/help.hpp"
#include "tools/sim/report.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

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
      auto number = number_of<uint32_t>(trimmed(part));
      if (!number)
        return misuse(
          fmt::format(" takes indices of replicas, such as 7 or 3,7; '{}' is none", part));
      place.push_back(*number);
    }
    return {};
  };
  return unwritten({store, {}});
}

// A prediction less the mean of the recorded steps, as a share of it.
interval_estimate difference_of(const interval_estimate& prediction, double recorded) {
  auto share = [recorded](double seconds) { return seconds / recorded - 1; };
  return {share(prediction.mean), prediction.standard_error / recorded, share(prediction.low),
          share(prediction.high), prediction.count};
}

// ---- reports ----

// From this error of the unchanged replay on, the report says that predictions are no better.
constexpr double noted_error = 0.0005;

std::string sync_text(const sync_options& sync) {
  return fmt::format("{} replicas, {} gradients a step, {}", sync.total_num_replicas,
                     sync.replicas_to_aggregate, to_string(sync.policy));
}

std::string figures(const std::vector<double>& seconds) {
  sorted_values sorted{seconds};
  return fmt::format("mean {:#.4g} s, median {:#.4g}, p90 {:#.4g}, longest {:#.4g}",
                     estimate_of(seconds).mean, sorted.quantile(0.5), sorted.quantile(0.9),
                     sorted.quantile(1));
}

std::string difference_text(const interval_estimate& difference) {
  if (difference.low <= 0 && difference.high >= 0)
    return fmt::format(
      "no difference that could be told from chance: {:+.1f} % [{:+.1f} %, {:+.1f} "
      "%]",
      100 * difference.mean, 100 * difference.low, 100 * difference.high);
  auto ends = std::minmax({std::abs(difference.low), std::abs(difference.high)});
  return fmt::format("a step takes {} {} [{} to {}]", percent(difference.mean),
                     difference.mean < 0 ? "less" : "longer", percent(ends.first),
                     percent(ends.second));
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

// Says how the times of cancelled gradients are estimated, and for which replicas they cannot be.
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
          {"longest_completed", seconds(cut.longest)},
          {"unknown_replicas", cut.unknown}};
}

} // namespace

expected<replay_command> parse_replay_options(int argument_count, const char* const* arguments) {
  constexpr option_range replica_counts{1, 1e6};
  replay_command command;
  command_options all{replay_introduction, "values follow their option, as in --aggregate 3",
                      "\n" + sim_exit_codes_text(true)};
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
  all.add_help(command.answer);
  if (auto done = all.read(argument_count, arguments); !done) return tl::unexpected(done.error());
  if (!command.answer.empty() || !command.run_dir.empty()) return command;
  return misuse("which run? Give its folder: troupe sim replay runs/NAME");
}

std::string replay_text(const replay_command& command, const run_folder& folder,
                        const replay_report& report) {
  auto text = fmt::format("recorded   {}: {} steps, {}\n"
                          "           {}\n",
                          command.run_dir, report.recorded.size(), sync_text(report.recorded_sync),
                          figures(report.recorded));
  if (report.recorded.size() > 1)
    text
      += fmt::format("           its second half differs from its first by {:+.1f} % of the mean "
                     "step: so much runs differ at least\n",
                     100 * report.difference_of_halves);
  text += fmt::format("replayed   as it was: {}\n", figures(report.unchanged.seconds));
  if (std::abs(report.error.mean_step) >= noted_error)
    text += fmt::format("           off by {:+.1f} % in the mean; of single steps by {} in the "
                        "median, {} at p90: predictions are no better\n",
                        100 * report.error.mean_step, percent(report.error.median),
                        percent(report.error.p90));
  if (report.changed) {
    text
      += fmt::format("with       {}: {}\n", option_text(command), sync_text(report.changed_sync));
    if (!report.changed->seconds.empty())
      text += fmt::format("           {}\n", figures(report.changed->seconds));
    if (report.prediction) {
      const auto& prediction = *report.prediction;
      auto recorded = estimate_of(report.recorded).mean;
      text += fmt::format(
        "so         {}\n"
        "           in 95 of 100 cases, another run with that change takes {:#.4g} "
        "to {:#.4g} s a step on average\n",
        difference_text(difference_of(prediction, recorded)), prediction.low, prediction.high);
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
              {"halves", report.difference_of_halves},
              {"changed", nullptr},
              {"prediction", nullptr},
              {"difference", nullptr},
              {"at_least", nullptr},
              {"cut", nullptr},
              {"stalled", nullptr}};
  result["recorded"].update(sync_json(report.recorded_sync));
  if (!report.changed) return json_text(result);
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
  return json_text(result);
}

int replay_command_main(int argument_count, const char* const* arguments) {
  auto command = parse_replay_options(argument_count, arguments);
  if (auto code = answered("troupe sim replay", command)) return *code;
  auto folder = read_run_folder(command->run_dir);
  if (!folder) return refuse("troupe sim replay", folder.error());
  if (auto outputs = check_outputs(command->json); !outputs)
    return refuse("troupe sim replay", outputs.error());
  try {
    auto report = replay(*folder, *command);
    auto written = write_report(command->json, {},
                                {.text = [&] { return replay_text(*command, *folder, report); },
                                 .json = [&] { return replay_json(*command, report); }});
    if (!written) return refuse("troupe sim replay", written.error(), exit_code::user_error);
    auto is_stalled = report.changed && report.changed->stalled;
    return static_cast<int>(is_stalled ? exit_code::stalled : exit_code::finished);
  } catch (const failure& failed) {
    return refuse("troupe sim replay", failed.reason());
  }
}

} // namespace troupe
