// SPDX-License-Identifier: Apache-2.0
// Has the simulator try numbers of backups and policies, and puts the answer into words.
#include "tools/sim/advise.hpp"

#include "messages/errors/failure.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "tools/options/help.hpp"
#include "tools/sim/goodput.hpp"
#include "tools/sim/plots/sim_plots.hpp"
#include "tools/sim/report.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/ranges.h>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

// The synchronous policies, those without left-over tokens first.
std::vector<sync_policy> policies_with_backups() {
  auto policies = policies_that(&policy_traits::is_synchronous);
  std::stable_partition(policies.begin(), policies.end(),
                        [](sync_policy policy) { return !traits_of(policy).counts_tokens(); });
  return policies;
}

std::string advise_introduction() {
  const auto about_policies = fmt::format(
    "With --policy, advice is about that one only, instead of {}; there is no --sweep. The cost is "
    "the time of all replicas: step time * steps to the goal (--iterations) * replicas.\n",
    names_of(policies_with_backups(), " and "));
  return "Looks for the number of backups and the policy that bring a model to its goal at\n"
         "the lowest cost, and says in words what they save and cost; also if it is best\n"
         "to have none.\n"
         "\n"
         "Usage: troupe sim advise --replicas N [OPTIONS]   how many of them as backups\n"
         "       troupe sim advise --aggregate N [OPTIONS]  how many to buy beside them\n"
         "\n"
         + wrapped(about_policies, 0, 80);
}

// The help shows the defaults of advise, which are not those of `troupe sim`.
void adapt_help(command_options& all) {
  for (const auto* key : {"sweep", "ledger", "steps-csv"})
    all.hide(key);
  all.show_default("policy", names_of(policies_with_backups(), " and "));
  all.show_default("aggregate", "what advise looks for");
}

bool is_given(const sim_command& command, std::string_view key) {
  return command.origins.contains(key);
}

// "45.9 % less [44.1 to 47.7 %]"
std::string difference_text(const interval_estimate& difference) {
  auto ends = std::minmax({std::abs(difference.low), std::abs(difference.high)});
  if (difference.low <= 0 && difference.high >= 0)
    return fmt::format("{:+.1f} % [{:+.1f} to {:+.1f} %]", 100 * difference.mean,
                       100 * difference.low, 100 * difference.high);
  return fmt::format("{} {} [{:.1f} to {:.1f} %]", percent(difference.mean),
                     difference.mean < 0 ? "less" : "more", 100 * ends.first, 100 * ends.second);
}

std::string backups(uint32_t count) {
  return fmt::format("{} backup{}", count == 0 ? "no" : std::to_string(count),
                     count == 1 ? "" : "s");
}

std::string candidate_text(const advice_candidate& candidate) {
  return fmt::format("{} with {}", to_string(candidate.policy), backups(candidate.backups));
}

// The quantity that backups save.
std::string_view effort(const advice_question& question) {
  return question.buys ? "of the replica time to the goal" : "of the time to the goal";
}

// ---- parts of the answer ----

std::string headline(const advice_report& report) {
  const auto& best = report.best();
  const auto& baseline = report.baseline();
  if (report.found.is_worth_it())
    return fmt::format("advice     {}: a step takes the first {} of {} gradients\n",
                       candidate_text(best), best.needed, best.replicas);
  if (baseline.backups > 0)
    return fmt::format("advice     no more backups than the {} that are dead\n", baseline.backups);
  if (report.question.buys)
    return fmt::format("advice     buy none: take {} replicas, and wait for all\n",
                       baseline.replicas);
  if (baseline.replicas == 1) return "advice     none: one replica waits for no other\n";
  return fmt::format("advice     none: wait for all {} replicas\n", baseline.replicas);
}

std::string reasons_against(const advice_report& report) {
  auto best_with_more = report.found.best_with_more();
  if (!best_with_more) return "because    no more could be tried\n";
  if (report.baseline().report.step_time.max == 0) return "because    no step takes any time\n";
  const auto& other = report.found.tried[*best_with_more];
  const auto& difference = other.difference;
  if (std::isnan(difference.low))
    return "because    the steps are too few to tell what others would change; raise --steps\n";
  auto is_sure = difference.low > 0 || difference.high < 0;
  return fmt::format("because    the best of the others, {}, changes {} by {:+.1f} % [{:+.1f} to "
                     "{:+.1f} %]{}\n",
                     candidate_text(other), effort(report.question).substr(3),
                     100 * difference.mean, 100 * difference.low, 100 * difference.high,
                     is_sure ? "" : ", which may be chance");
}

std::string savings(const advice_report& report) {
  if (!report.found.is_worth_it()) return reasons_against(report);
  const auto& best = report.best();
  const auto& baseline = report.baseline();
  auto text = fmt::format("saves      {} {} [{:.1f} to {:.1f} %], against waiting for all {}{}\n",
                          percent(best.difference.mean), effort(report.question),
                          -100 * best.difference.high, -100 * best.difference.low, baseline.needed,
                          baseline.backups == 0 ? "" : " that are there");
  text += fmt::format("           a step takes {:#.4g} s instead of {:#.4g} s; 1 of 100 takes "
                      "more than {:#.4g} s instead of {:#.4g} s\n",
                      best.report.step_time.mean, baseline.report.step_time.mean,
                      best.report.step_time.p99, baseline.report.step_time.p99);
  if (report.question.buys) {
    text += fmt::format("           the goal is there after {} {} time, with {} more replicas\n",
                        percent(1 - best.time), best.time < 1 ? "less" : "more",
                        percent(static_cast<double>(best.backups) / best.needed));
  }
  auto [fewest, most] = report.found.nearly_best();
  if (fewest != most)
    text += fmt::format("           {} to {} backups come within 1 % of it\n", fewest, most);
  if (report.question.buys && best.backups == best.needed)
    text += fmt::format("           {} are the most that were tried: more may save more\n",
                        backups(best.backups));
  return text;
}

// "replicas 3, 5 and 4 others"
std::string replicas_text(std::span<const uint32_t> replicas) {
  constexpr size_t listed_max = 8;
  if (replicas.size() == 1) return fmt::format("replica {}", replicas.front());
  auto listed = replicas.size() > listed_max ? listed_max : replicas.size() - 1;
  auto others = replicas.size() - listed;
  return fmt::format("replicas {} and {}", fmt::join(replicas.first(listed), ", "),
                     others == 1 ? std::to_string(replicas.back())
                                 : fmt::format("{} others", others));
}

std::string hardly_heard_text(std::span<const uint32_t> replicas) {
  if (replicas.empty()) return {};
  auto is_one = replicas.size() == 1;
  return fmt::format("           {} {} less than half of the gradients that an average one gives: "
                     "{} data hardly count\n",
                     replicas_text(replicas), is_one ? "gives" : "give", is_one ? "its" : "their");
}

std::string costs(const advice_report& report) {
  if (!report.found.is_worth_it()) return {};
  const auto& figures = report.best().report;
  auto text = fmt::format(
    "costs      {} of all gradients are dropped, {} of the replicas' time is computed "
    "in vain\n",
    percent(figures.drop_fraction()),
    percent(figures.wasted_replica_seconds / figures.live_replica_seconds));
  if (traits_of(report.best().policy).cancels())
    text += "           computing has to end early when it is told to\n";
  return text + hardly_heard_text(report.hardly_heard);
}

std::string alternatives(const advice_report& report) {
  std::string text;
  if (!report.found.is_worth_it()) return text;
  for (auto index : report.found.best_of_policy) {
    if (index == report.found.best) continue;
    const auto& candidate = report.found.tried[index];
    text += fmt::format("{}{}: {}\n", text.empty() ? "else       " : "           ",
                        candidate_text(candidate), difference_text(candidate.difference));
  }
  return text;
}

// A week of the best, and of the baseline, on nodes that fail.
std::string failures_text(const sim_command& command, const advice_report& report) {
  if (!command.mtbf_hours) return {};
  goodput_command goodput;
  goodput.mtbf_hours = *command.mtbf_hours;
  auto week_of = [&](const advice_candidate& candidate) {
    const auto model = goodput.model(candidate.needed, candidate.backups);
    auto row = goodput_row_of(model, {}, goodput.days * 24 * 3600, affordable_runs(goodput, model),
                              report.question.base.seed);
    return fmt::format("a job with {} stops {:.2f} times a week, {:.2f} % of it is useful work",
                       backups(candidate.backups), row.stops, 100 * row.useful);
  };
  auto text = fmt::format("failures   if a node fails every {:g} h: {}\n", *command.mtbf_hours,
                          week_of(report.baseline()));
  if (report.found.is_worth_it()) text += fmt::format("           {}\n", week_of(report.best()));
  return text
         + fmt::format(
           "           (a restart takes {:g} s, a checkpoint {:g} s at the best interval; "
           "troupe sim goodput takes other numbers)\n",
           goodput.restart, goodput.checkpoint_cost);
}

// The other options that were given.
std::string other_options(const sim_command& command) {
  std::string text;
  for (const auto& [key, value] : option_texts(command.options))
    if (is_given(command, key) && key != "replicas" && key != "aggregate" && key != "compute"
        && key != "policy")
      text += fmt::format(" --{} {}", key, value);
  return text.empty() ? "" : fmt::format("           with{}\n", text);
}

std::string trace_note(const advice_report& report) {
  const auto& figures = report.best().report;
  if (!figures.trace || !figures.trace->is_exceeded) return {};
  return fmt::format("           {}\n", trace_text(*figures.trace, figures));
}

std::string assumptions(const sim_command& command, const advice_report& report) {
  return fmt::format(
           "assumes    steps to the goal go as {}, N being the gradients of each; computing "
           "times are {}\n"
           "           {} candidates of {} steps each, all of the same draws; intervals "
           "hold the truth in 95 of 100 cases\n",
           command.iterations.text(), command.options.compute, report.found.tried.size(),
           report.question.base.steps * report.question.base.runs)
         + trace_note(report) + other_options(command);
}

std::string tail_note(const advice_report& report) {
  const auto& base = report.question.base;
  if (!base.compute.has_mean())
    return "note       the computing times have no mean: another seed may advise otherwise; look "
           "at medians\n";
  return has_step_variance(base)
           ? ""
           : "note       steps that wait for all have no variance: another seed "
             "may tell of another saving; look at medians\n";
}

std::string restart_note(const advice_report& report) {
  const auto& figures = report.best().report;
  return figures.restarts == 0 ? ""
                               : fmt::format("note       the best {}\n", restart_text(figures));
}

json candidate_json(const advice_candidate& candidate) {
  return {{"policy", to_string(candidate.policy)},
          {"backups", candidate.backups},
          {"aggregate", candidate.needed},
          {"replicas", candidate.replicas},
          {"step_seconds", candidate.report.step_time.mean},
          {"relative_time", candidate.time},
          {"relative_cost", candidate.cost},
          {"difference", interval_json(candidate.difference)},
          {"drop_fraction", candidate.report.drop_fraction()},
          {"wasted_replica_seconds", candidate.report.wasted_replica_seconds}};
}

// The first so many replicas are dead.
std::vector<uint32_t> hardly_heard_of(const std::vector<uint64_t>& accepted, uint32_t dead) {
  auto sum = std::accumulate(accepted.begin(), accepted.end(), uint64_t{0});
  auto live = accepted.size() - dead;
  std::vector<uint32_t> replicas;
  for (auto replica = dead; replica < accepted.size(); ++replica)
    if (2 * accepted[replica] * live < sum) replicas.push_back(replica);
  return replicas;
}

expected<void> write(const sim_command& command, const advice_report& report) {
  auto as_sweep = command;
  as_sweep.sweep.key = report.question.buys ? "replicas" : "aggregate";
  return write_report(command.json, command.plots,
                      {.text = [&] { return advice_text(command, report); },
                       .json = [&] { return advice_json(command, report); },
                       .plots = [&] { return write_sim_plots(as_sweep, report.rows); }});
}

// Refuses options that have no meaning for advise.
expected<void> check_options(const sim_command& command) {
  if (!command.sweep.key.empty())
    return misuse("--sweep: advise chooses by itself what to try; leave it out");
  if (!command.ledger.empty() || !command.steps_csv.empty())
    return misuse(fmt::format("--{}: advise makes many runs, and the file is of one; leave it out",
                              command.ledger.empty() ? "steps-csv" : "ledger"));
  if (command.options.aggregate == dynamic_aggregate)
    return misuse("--aggregate dynamic: advise is about a fixed number of backups; give one, or "
                  "leave it out");
  if (command.options.aggregate && is_given(command, "replicas"))
    return misuse(
      "give --replicas, and ask how many of them are to be backups; or --aggregate, and "
      "ask how many to buy");
  return {};
}

} // namespace

expected<sim_command> parse_advise_options(int argument_count, const char* const* arguments) {
  std::optional<double> mtbf;
  auto command = parse_sim_options(
    argument_count, arguments, advise_introduction(), [&](command_options& all) {
      adapt_help(all);
      all.add("--mtbf", "HOURS",
              "mean time between failures of one node: say also what backups save of a week by "
              "taking the place of nodes that fail",
              real_value(mtbf, above(0, real_max)), "not asked");
    });
  if (command) command->mtbf_hours = mtbf;
  return command;
}

expected<advice_question> question_of(const sim_command& command) {
  if (auto valid = check_options(command); !valid) return tl::unexpected<error>(valid.error());
  auto options = command.options;
  bool buys = options.aggregate.has_value();
  if (buys) options.replicas = *options.aggregate;
  auto policies = policies_with_backups();
  std::vector<sim_options> rows{options};
  if (!is_given(command, "policy")) {
    rows.clear();
    for (auto policy : policies)
      rows.emplace_back(options).policy = to_string(policy);
    options = rows.front();
  }
  if (auto used = check_uses(rows); !used) return tl::unexpected<error>(used.error());
  auto base = experiment_of(options);
  if (!base) return tl::unexpected<error>(base.error());
  if (options.policy == "sync" || options.policy == local_sgd_name || base->collective) {
    return misuse(fmt::format("--policy {}: a step waits for all, so there is nothing to advise; "
                              "leave it out, or take {}",
                              options.policy,
                              names_of(policies_that(&policy_traits::is_synchronous))));
  }
  auto mtbf = command.mtbf_hours.value_or(real_max);
  if (auto valid = check_mtbf(base->sync.total_num_replicas, mtbf, goodput_command{}.days); !valid)
    return tl::unexpected<error>(valid.error());
  if (is_given(command, "policy")) policies = {base->sync.policy};
  if (traits_of(policies.front()).is_asynchronous()) {
    return misuse(fmt::format("--policy {}: advise is about those that have backups: {}",
                              options.policy,
                              names_of(policies_that(&policy_traits::is_synchronous), " and ")));
  }
  return advice_question{std::move(*base), std::move(policies), command.iterations, buys};
}

advice_report advise(const sim_command& command, const advice_question& question) {
  using policy_and_backups = std::pair<sync_policy, uint32_t>;
  std::map<policy_and_backups, sim_row> rows;
  std::map<policy_and_backups, std::vector<uint64_t>> contributions; // of each replica
  std::mutex mutex;
  auto run_candidate = [&](const experiment& candidate) {
    const auto& sync = candidate.sync;
    policy_and_backups key{sync.policy, sync.total_num_replicas - sync.replicas_to_aggregate};
    std::vector<uint64_t> accepted(sync.total_num_replicas);
    std::optional<run_profile> profile;
    if (!command.plots.empty()) profile.emplace(candidate, false);
    auto watched = candidate;
    watched.hashes = false;
    watched.on_step = [&](const step_record& step) {
      for (const auto& gradient : step.accepted)
        ++accepted[gradient.replica];
      if (profile) profile->add(step);
    };
    auto report = run(watched);
    std::lock_guard guard{mutex};
    contributions[key] = std::move(accepted);
    if (!profile) return report;
    sim_row row{.options = command.options, .experiment = candidate, .report = report};
    row.options.policy = to_string(sync.policy);
    row.options.replicas = sync.total_num_replicas;
    row.options.aggregate = sync.replicas_to_aggregate;
    row.profile = profile->figures();
    rows.emplace(key, std::move(row));
    return report;
  };
  auto found = advise(question, run_candidate);
  if (!found)
    throw failure{{errc::stalled, "no number of backups that was tried makes all its steps"}};
  advice_report report{question, std::move(*found)};
  const auto& best = report.best();
  report.hardly_heard
    = hardly_heard_of(contributions[{best.policy, best.backups}], question.base.dead);
  for (auto& [key, row] : rows)
    if (key.first == best.policy) report.rows.push_back(std::move(row));
  if (!question.buys) std::ranges::reverse(report.rows); // in ascending order of N
  return report;
}

std::string advice_text(const sim_command& command, const advice_report& report) {
  return headline(report) + savings(report) + costs(report) + alternatives(report)
         + failures_text(command, report) + assumptions(command, report) + tail_note(report)
         + restart_note(report);
}

std::string advice_json(const sim_command& command, const advice_report& report) {
  json result{{"worth_it", report.found.is_worth_it()},
              {"buys", report.question.buys},
              {"iterations", command.iterations.text()},
              {"compute", command.options.compute},
              {"seed", report.question.base.seed},
              {"baseline", candidate_json(report.baseline())},
              {"best", candidate_json(report.best())},
              {"hardly_heard", report.hardly_heard},
              {"tried", json::array()}};
  for (const auto& candidate : report.found.tried)
    result["tried"].push_back(candidate_json(candidate));
  return json_text(result);
}

int advise_command_main(int argument_count, const char* const* arguments) {
  auto command = parse_advise_options(argument_count, arguments);
  if (auto code = answered("troupe sim advise", command)) return *code;
  auto question = question_of(*command);
  if (!question) return refuse("troupe sim advise", question.error());
  if (auto outputs = check_outputs(command->json, command->plots); !outputs)
    return refuse("troupe sim advise", outputs.error());
  try {
    auto report = advise(*command, *question);
    if (auto written = write(*command, report); !written)
      return refuse("troupe sim advise", written.error(), exit_code::user_error);
  } catch (const failure& failed) {
    auto is_stalled = failed.reason().code == errc::stalled;
    return refuse("troupe sim advise", failed.reason(),
                  is_stalled ? exit_code::stalled : exit_code::usage);
  }
  return static_cast<int>(exit_code::finished);
}

} // namespace troupe
