// SPDX-License-Identifier: Apache-2.0
// Each promise, and how it is told that it was broken.
#include "tests/sim/checkers.hpp"

#include "tests/sim/stuck_alarm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <set>
#include <vector>

namespace troupe::test {

namespace {

bool was_counted(const evidence& course, size_t variable, const made_gradient& one) {
  return ballot_model::share(course.values[variable], one.replica, one.number) != 0;
}

bool is_equal(const tensor& a, const tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

uint64_t steps_made(const evidence& course) {
  return course.report.job.step;
}

// A job that was restarted has made some steps twice, and the last time is what counts; steps that
// it did not come to again are undone.
std::map<uint64_t, const step_record*> last_records(const evidence& course) {
  std::map<uint64_t, const step_record*> last;
  for (const auto& step : course.steps)
    if (step.step <= steps_made(course)) last[step.step] = &step;
  return last;
}

// ---- gradients ----

std::string counted_at_most_once(const evidence& course) {
  // A step counts as many gradients as it needs, or more; so none has a larger share than this.
  auto needed = course.what.sync.replicas_to_aggregate;
  if (course.what.sync.dynamic)
    for (const auto& step : course.steps)
      needed = std::min(needed, step.needed);
  auto share_max = 1.0F / static_cast<float>(needed);
  for (size_t variable = 0; variable < course.values.size(); ++variable)
    for (const auto& one : course.made) {
      auto share = ballot_model::share(course.values[variable], one.replica, one.number);
      if (share < 0 || share > share_max * 1.0001F)
        return fmt::format("gradient {} of replica {} has a share of {} in variable {}, at most {} "
                           "is one time",
                           one.number, one.replica, share, variable, share_max);
    }
  return {};
}

// The variable after one step, as a plain loop makes it.
tensor updated(const tensor& before, const std::vector<const made_gradient*>& counted,
               size_t variable) {
  auto after = zeros(before.extents());
  auto into = after.mutable_values<float>();
  auto from = before.values<float>();
  rules::sgd::for_elements<float> rule{rules::sgd{.learning_rate = ballot_model::learning_rate}};
  std::array<float, 0> no_slots{};
  for (size_t i = 0; i < into.size(); ++i) {
    auto sum = counted[0]->values[variable].values<float>()[i];
    for (size_t k = 1; k < counted.size(); ++k)
      sum += counted[k]->values[variable].values<float>()[i];
    into[i] = rule(from[i], sum / static_cast<float>(counted.size()), no_slots);
  }
  return after;
}

// The gradients that were made of the variable as it was then, and count in it.
std::vector<const made_gradient*> counted_of(const evidence& course, size_t variable,
                                             const tensor& now) {
  std::vector<const made_gradient*> counted;
  for (const auto& one : course.made)
    if (was_counted(course, variable, one) && is_equal(one.read[variable], now))
      counted.push_back(&one);
  std::ranges::sort(counted, {}, [](const auto* one) {
    return std::pair{one->replica, one->number};
  });
  return counted;
}

std::string serial_course_of(const evidence& course, size_t variable) {
  auto now = course.model.first_value();
  // A job that fails may leave one update behind that was not made a step.
  auto last = steps_made(course) + (course.report.job.failure ? 1 : 0);
  for (uint64_t step = 1; step <= last; ++step) {
    auto counted = counted_of(course, variable, now);
    if (counted.empty() && step > steps_made(course)) break;
    if (counted.empty())
      return fmt::format("no gradient that counts in variable {} was made for step {}", variable,
                         step);
    now = updated(now, counted, variable);
  }
  return is_equal(now, course.values[variable])
           ? std::string{}
           : fmt::format("variable {} is not what its gradients make of it one after the other",
                         variable);
}

// Here the ledger has to say which step a gradient counted in: of each replica, in the order in
// which it made them.
std::string asynchronous_course_of(const evidence& course) {
  const auto& job = course.report.job;
  if (course.values.size() != 1 || job.failure || course.report.restarts > 0) return {};
  std::map<uint32_t, std::vector<const made_gradient*>> counted;
  for (const auto& one : course.made)
    if (was_counted(course, 0, one)) counted[one.replica].push_back(&one);
  std::map<uint32_t, size_t> used;
  auto now = course.model.first_value();
  for (const auto& step : course.steps) {
    std::vector<const made_gradient*> of_step;
    for (const auto& accepted : step.accepted) {
      const auto& made = counted[accepted.replica];
      auto next = used[accepted.replica]++;
      if (next == made.size())
        return fmt::format("step {} accepted a gradient of replica {} that does not count",
                           step.step, accepted.replica);
      of_step.push_back(made[next]);
    }
    std::ranges::sort(of_step, {}, [](const auto* one) {
      return std::pair{one->replica, one->number};
    });
    now = updated(now, of_step, 0);
  }
  return is_equal(now, course.values[0]) ? std::string{}
                                         : "the variable is not what the ledger's gradients make";
}

std::string equal_to_the_serial_oracle(const evidence& course) {
  if (course.what.local_sgd.local_steps > 1) return {}; // they read what no owner has held
  if (traits_of(course.what.sync.policy).is_asynchronous()) return asynchronous_course_of(course);
  for (size_t variable = 0; variable < course.values.size(); ++variable)
    if (auto wrong = serial_course_of(course, variable); !wrong.empty()) return wrong;
  return {};
}

// Updates add up, so this holds whichever steps the gradients counted in.
std::string equal_to_the_sum(const evidence& course) {
  for (size_t variable = 0; variable < course.values.size(); ++variable) {
    for (uint32_t i = 0; i < ballot_model::numbers; ++i) {
      double expected = course.model.first_value().values<float>()[i];
      for (const auto& one : course.made)
        expected -= static_cast<double>(ballot_model::learning_rate)
                    * ballot_model::share(course.values[variable], one.replica, one.number)
                    * one.values[variable].values<float>()[i];
      double seen = course.values[variable].values<float>()[i];
      if (std::abs(seen - expected) > 1e-3)
        return fmt::format("element {} of variable {} is {}, its gradients make {} of it", i,
                           variable, seen, expected);
    }
  }
  return {};
}

std::string counted_as_the_ledger_says(const evidence& course) {
  // With two variables, a gradient may count in only one of them.
  if (course.values.size() != 1) return {};
  size_t in_ledger = 0;
  for (const auto& [step, record] : last_records(course))
    in_ledger += record->accepted.size() * course.what.local_sgd.local_steps;
  auto in_variable = std::ranges::count_if(
    course.made, [&](const auto& one) { return was_counted(course, 0, one); });
  auto unfinished = course.report.job.failure
                      ? course.what.sync.total_num_replicas * course.what.local_sgd.local_steps
                      : 0;
  auto in_variable_count = static_cast<size_t>(in_variable);
  return in_ledger <= in_variable_count && in_variable_count <= in_ledger + unfinished
           ? std::string{}
           : fmt::format("the ledger has {} accepted gradients, the variable {}", in_ledger,
                         in_variable);
}

std::string staleness_as_the_policy_allows(const evidence& course) {
  for (const auto& step : course.steps) {
    for (const auto& one : step.accepted)
      if (one.staleness > 0 && !traits_of(course.what.sync.policy).is_asynchronous())
        return fmt::format("step {} accepted a gradient of replica {} that was {} steps late",
                           step.step, one.replica, one.staleness);
    for (const auto& one : step.stale)
      if (traits_of(course.what.sync.policy).is_asynchronous())
        return fmt::format("step {} dropped a gradient of replica {}, which this policy never does",
                           step.step, one.replica);
  }
  return {};
}

std::string finite(const evidence& course) {
  for (size_t variable = 0; variable < course.values.size(); ++variable)
    for (auto value : course.values[variable].values<float>())
      if (!std::isfinite(value))
        return fmt::format("variable {} holds a number that is not finite", variable);
  return {};
}

// ---- tokens and steps ----

// Every gradient but the first of a life is made with a token.
std::string no_token_from_nowhere(const evidence& course) {
  const auto& sync = course.what.sync;
  if (sync.policy != sync_policy::tensorflow) return {};
  auto lives = sync.total_num_replicas * (1 + course.report.restarts);
  for (const auto& [what, count] : course.report.probes)
    if (what == "fault restart") lives += count;
  auto tokens = sync.first_tokens() * (1 + course.report.restarts)
                + course.steps.size() * sync.tokens_per_step();
  return course.made.size() <= lives + tokens
           ? std::string{}
           : fmt::format("{} gradients were made with {} tokens", course.made.size(), tokens);
}

uint64_t probe(const evidence& course, const char* name) {
  auto found = course.report.probes.find(name);
  return found == course.report.probes.end() ? 0 : found->second;
}

bool silences(const fault& one) {
  return one.kind == fault_kind::freeze || one.kind == fault_kind::partition
         || one.kind == fault_kind::swizzle;
}

// Whether a job says that its step cannot end. Its code is another one if replicas were lost.
bool is_stall(const error& failure) {
  return failure.message.find(" cannot end: ") != std::string::npos;
}

// Where a job says that no token is left, all have been handed out, but for those that were on
// their way to a replica that was lost.
std::string all_tokens_handed_out(const evidence& course) {
  const auto& sync = course.what.sync;
  const auto& failure = course.report.job.failure;
  auto is_told = failure && is_stall(*failure);
  if (!is_told || sync.policy != sync_policy::tensorflow || course.report.restarts > 0
      || course.what.faults.loses_messages())
    return {};
  auto made = sync.first_tokens() + course.steps.size() * sync.tokens_per_step();
  // Where messages take no time, and no node is silent, none is on its way when a node is lost.
  const auto& network = *course.what.network;
  auto is_instant = !network.latency && network.detection == job_time{0}
                    && std::ranges::none_of(course.what.faults.faults, silences);
  auto lost = is_instant ? 0
                         : probe(course, "fault crash") + probe(course, "fault crash_with_token")
                             + probe(course, "fault given up");
  auto handed_out = probe(course, "delivered Token");
  return made <= handed_out + lost
           ? std::string{}
           : fmt::format(
             "{} tokens were made, {} came to replicas, and no more than {} can be lost", made,
             handed_out, lost);
}

std::string steps_one_after_the_other(const evidence& course) {
  uint64_t before = 0;
  uint64_t restarts = 0;
  job_time ended{0};
  for (const auto& step : course.steps) {
    if (step.step <= before) ++restarts;
    if (step.step > before + 1 || restarts > course.report.restarts)
      return fmt::format("step {} came after step {}", step.step, before);
    if (step.ended < step.began || step.ended < ended)
      return fmt::format("step {} ended before it began, or before the one before", step.step);
    // Two variables may take different replicas into one step: then some are in the books of
    // another.
    if (course.model.variables == 1 && step.accepted.size() < step.needed)
      return fmt::format("step {} has {} gradients and needed {}", step.step, step.accepted.size(),
                         step.needed);
    before = step.step;
    ended = step.ended;
  }
  return {};
}

std::string an_end_to_every_wait(const evidence& course) {
  const auto& failure = course.report.job.failure;
  if (!failure)
    return steps_made(course) == course.what.steps
             ? std::string{}
             : fmt::format("the job ended well after {} steps", steps_made(course));
  if (failure->message.empty()) return "the job failed without a word";
  auto is_impatient = course.what.network->silence_timeout > job_time{0};
  auto is_gone = [&](const fault& one) {
    if (is_impatient && silences(one)) return true;
    return one.kind == fault_kind::crash || one.kind == fault_kind::crash_with_token
           || one.kind == fault_kind::corrupt;
  };
  // Anonymous tokens die with the replica that holds them, and backups may be too few for all that
  // are gone; a replica is gone, too, when its gradient is refused.
  auto is_for_good = [&](const fault& one) {
    return one.kind == fault_kind::corrupt || (is_gone(one) && one.lasts == job_time{0});
  };
  auto all_return = std::ranges::none_of(course.what.faults.faults, is_for_good);
  // Under tensorflow, tokens are lost with the replica that holds them.
  auto may_lack_tokens
    = course.what.sync.policy == sync_policy::tensorflow && !course.report.job.lost.empty();
  if (is_stall(*failure) && all_return && !may_lack_tokens)
    return "everybody came back, and the job is said to stall: " + failure->message;
  auto may_fail = std::ranges::any_of(course.what.faults.faults, is_gone)
                  || !course.what.faults.rates.is_empty() || may_lack_tokens;
  return may_fail ? std::string{} : "nothing was gone, and the job failed: " + failure->message;
}

// ---- the roll call ----

std::string what_a_process_saw(const process_life& one, const char* what) {
  return fmt::format("node {} in attempt {}, which entered at {} ns: {}", one.node, one.attempt,
                     one.entered.count(), what);
}

// By attempt: when the last of its processes entered, each counted by its first entrance.
std::map<uint64_t, job_time> last_entrances(const evidence& course) {
  std::map<uint64_t, std::map<node_index, job_time>> first;
  for (const auto& one : course.report.processes)
    first[one.attempt].emplace(one.node, one.entered);
  std::map<uint64_t, job_time> last;
  for (const auto& [attempt, nodes] : first)
    for (const auto& [node, entered] : nodes)
      last[attempt] = std::max(last[attempt], entered);
  return last;
}

// Where a job may begin without some of its replicas: whether no more were missing.
bool were_enough_there(const evidence& course, const process_life& began) {
  std::set<node_index> there;
  for (const auto& one : course.report.processes)
    if (one.attempt == began.attempt && one.entered <= *began.began) there.insert(one.node);
  auto owners = course.what.network->owners;
  for (uint32_t replica : course.what.dead_replicas)
    there.erase(1 + owners + replica);
  return there.size() >= owners + course.what.min_replicas
         && *std::next(there.begin(), owners - 1) == owners;
}

std::string nobody_begins_alone(const evidence& course) {
  auto last = last_entrances(course);
  for (const auto& one : course.report.processes) {
    if (!one.began) continue;
    if (course.what.min_replicas > 0 ? !were_enough_there(course, one)
                                     : *one.began < last[one.attempt])
      return what_a_process_saw(one, "it began before all were there that it needs");
  }
  return {};
}

std::string all_hear_of_one_ending(const evidence& course) {
  uint64_t attempts = 0;
  for (const auto& one : course.report.processes)
    attempts = std::max(attempts, one.attempt);
  const auto& job = course.report.job;
  for (const auto& one : course.report.processes) {
    if (one.attempt < attempts || !one.ending) continue;
    if (one.ending->step != job.step)
      return what_a_process_saw(one, "it was told another step than the chief's process");
    if (one.ending->failure != job.failure)
      return what_a_process_saw(one, "it was told another end than the chief's process");
  }
  return {};
}

std::string nobody_leaves_before_the_end(const evidence& course) {
  // A process that comes when the job is over has to wait for no other, nor any other for it.
  std::map<uint64_t, job_time> first_heard;
  std::map<uint64_t, job_time> last_heard;
  for (const auto& one : course.report.processes)
    if (one.heard_of_end)
      first_heard[one.attempt] = std::min(
        *one.heard_of_end, first_heard.try_emplace(one.attempt, job_time::max()).first->second);
  for (const auto& one : course.report.processes)
    if (one.left && one.heard_of_end && one.entered < first_heard[one.attempt])
      last_heard[one.attempt] = std::max(last_heard[one.attempt], *one.heard_of_end);
  for (const auto& one : course.report.processes) {
    if (one.left && *one.left < last_heard[one.attempt])
      return what_a_process_saw(one, "it left before another had heard that the job is over");
    auto nothing_happened = course.what.faults.is_empty();
    if (nothing_happened && !(one.began && one.left))
      return what_a_process_saw(one, "it did not begin, or did not leave, and nothing was wrong");
  }
  return {};
}

constexpr std::array all_checkers{
  checker{"variables stay finite", finite},
  checker{"each gradient counts at most once", counted_at_most_once},
  checker{"variables are what a serial loop makes of the accepted gradients",
          equal_to_the_serial_oracle},
  checker{"variables are the sum of what counted", equal_to_the_sum},
  checker{"what counted is what the ledger says", counted_as_the_ledger_says},
  checker{"gradients are as late as the policy allows", staleness_as_the_policy_allows},
  checker{"no token comes from nowhere", no_token_from_nowhere},
  checker{"no token goes nowhere", all_tokens_handed_out},
  checker{"steps come one after the other, with as many gradients as they need",
          steps_one_after_the_other},
  checker{"no process begins before all are there that it needs", nobody_begins_alone},
  checker{"all processes are told how the job ended", all_hear_of_one_ending},
  checker{"no process leaves before the job is over for all", nobody_leaves_before_the_end},
  checker{"every wait ends, and a failure has a reason", an_end_to_every_wait},
};

} // namespace

std::span<const checker> checkers() {
  return all_checkers;
}

std::string judge(const evidence& course) {
  stuck_alarm alarm{course.seed, "the checkers", course.describe()};
  std::string lines;
  for (const auto& one : checkers())
    if (auto complaint = one.complaint(course); !complaint.empty())
      lines += fmt::format("  {}: {}\n", one.promise, complaint);
  return lines.empty() ? lines : fmt::format("{}\n{}", course.describe(), lines);
}

} // namespace troupe::test
