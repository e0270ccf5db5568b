// SPDX-License-Identifier: Apache-2.0
// The promises that every meeting must keep, whatever goes wrong in it.
#include "tests/sim/meeting_job.hpp"
#include "tests/small_arrays.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fmt/format.h>

using namespace std::chrono_literals;

namespace troupe::test {

namespace {

std::string name_of(uint32_t rank) {
  return fmt::format("worker:{}", rank);
}

template <class... Parts>
std::string about(uint32_t rank, fmt::format_string<Parts...> what, Parts&&... parts) {
  return fmt::format("{} {}", name_of(rank), fmt::format(what, std::forward<Parts>(parts)...));
}

bool is_absent(const meeting_plan& plan, uint32_t rank) {
  return std::ranges::any_of(plan.troubles, [rank](const meeting_trouble& one) {
    return one.kind == trouble_kind::absent && one.who == rank;
  });
}

// Whether a process's course is to be judged: it was there, and was not killed.
bool lives(const meeting_course& course, uint32_t rank) {
  return !course.processes[rank].was_killed && !is_absent(course.plan, rank);
}

// Whether a trouble may end a job badly, if it comes before the job's end.
bool may_end(const meeting_trouble& one) {
  switch (one.kind) {
  case trouble_kind::slow:
  case trouble_kind::stops:
    return false;
  case trouble_kind::late: // it is looked for now and then
    return one.at > meeting_plan::start_deadline - 100ms;
  default:
    return !one.is_silence() || one.length >= meeting_plan::silence_timeout;
  }
}

bool is_late(const meeting_plan& plan, uint32_t rank) {
  return std::ranges::any_of(plan.troubles, [rank](const meeting_trouble& one) {
    return one.kind == trouble_kind::late && one.who == rank;
  });
}

// The processes that `rank` may blame for a trouble. A late process may find that others have ended
// for it; and a silent one may be told so by its own name, as are all where a network falls apart.
std::set<uint32_t> culprits(const meeting_plan& plan, const meeting_trouble& one, uint32_t rank) {
  auto may_blame = [&](uint32_t other) {
    if (is_late(plan, rank) || one.kind == trouble_kind::partition) return true;
    if (one.who == rank) return other != rank || one.is_silence();
    return other == one.who;
  };
  std::set<uint32_t> some;
  for (uint32_t other = 0; other < plan.processes; ++other)
    if (may_blame(other)) some.insert(other);
  return some;
}

// How long a job takes in which nothing passes but what is drawn to: rounds of messages, and
// computing; before that the start, and what is in its way.
job_time usual_time(const meeting_plan& plan) {
  auto step = plan.compute_max + 12 * plan.latency_max;
  auto time = step * static_cast<int64_t>(plan.steps + 4) + 500ms;
  if (plan.resume) time += plan.resume->time;
  for (const auto& one : plan.troubles) {
    if (one.kind == trouble_kind::slow) time += one.length + one.factor * plan.latency_max;
    if (one.kind == trouble_kind::late) time += one.at;
    if (one.is_silence()) time += one.length;
  }
  return time;
}

// ---- the promises ----

std::string every_wait_ends(const meeting_course& course) {
  for (uint32_t rank = 0; rank < course.plan.processes; ++rank) {
    const auto& one = course.processes[rank];
    if (!lives(course, rank)) continue;
    if (!one.ended) return about(rank, "did not end");
    auto why = one.failure();
    if (why.code == errc::stalled) return about(rank, "waited for ever: {}", why.message);
  }
  return {};
}

// A process that is cut off itself may have to wait for its own deadline.
std::string in_time(const meeting_course& course) {
  const auto& plan = course.plan;
  for (uint32_t rank = 0; rank < plan.processes; ++rank) {
    auto limit = usual_time(plan) + plan.detection;
    for (const auto& one : plan.troubles) {
      if (one.kind == trouble_kind::absent || one.kind == trouble_kind::late)
        limit += meeting_plan::start_deadline;
      if (one.is_silence() && one.who == rank) limit += one.length;
    }
    const auto& ended = course.processes[rank].ended;
    if (lives(course, rank) && ended && *ended > limit)
      return about(rank, "ended after {:.3f} s, at most {:.3f} s would do: {}",
                   std::chrono::duration<double>(*ended).count(),
                   std::chrono::duration<double>(limit).count(),
                   course.processes[rank].failure().message);
  }
  return {};
}

std::string a_failure_has_a_cause(const meeting_course& course) {
  auto may_fail = std::ranges::any_of(course.plan.troubles, may_end);
  for (uint32_t rank = 0; rank < course.plan.processes; ++rank)
    if (auto why = course.processes[rank].failure();
        lives(course, rank) && !may_fail && why.code != errc::none)
      return about(rank, "failed though all passes: {}", why.message);
  return {};
}

bool blames(const error& why, const std::set<uint32_t>& some) {
  return std::ranges::any_of(
    some, [&](uint32_t rank) { return why.message.find(name_of(rank)) != std::string::npos; });
}

// As docs/failures.md says, by code.
std::string who_is_at_fault_is_named(const meeting_course& course) {
  const auto& plan = course.plan;
  for (uint32_t rank = 0; rank < plan.processes; ++rank) {
    auto why = course.processes[rank].failure();
    if (!lives(course, rank) || why.code == errc::none) continue;
    auto explains = [&](const meeting_trouble& one) {
      if (!may_end(one)) return false;
      if (one.kind == trouble_kind::throws && one.who == rank)
        return why == error{errc::user_code, "broken data"};
      auto keeps_away = one.kind == trouble_kind::absent || one.kind == trouble_kind::late
                        || (one.is_silence() && why.message.starts_with("waited 5.0 s"));
      auto is_its = why.code == errc::unavailable
                    || (why.code == errc::deadline_exceeded && keeps_away)
                    || (why.code == errc::invalid_argument && one.kind == trouble_kind::leaves);
      return is_its && blames(why, culprits(plan, one, rank));
    };
    if (std::ranges::none_of(plan.troubles, explains))
      return about(rank, "ended with error {}, and names nobody who is at fault: {}",
                   static_cast<int>(why.code), why.message);
  }
  return {};
}

std::string a_job_that_does_not_fail_is_whole(const meeting_course& course) {
  const auto& plan = course.plan;
  for (uint32_t rank = 0; rank < plan.processes; ++rank) {
    const auto& one = course.processes[rank];
    if (!lives(course, rank) || one.failure().code != errc::none) continue;
    if (!one.report) return about(rank, "ended without a report");
    auto leaves = std::ranges::any_of(plan.troubles, [rank](const meeting_trouble& trouble) {
      return trouble.kind == trouble_kind::leaves && trouble.who == rank;
    });
    auto steps = leaves ? plan.first_steps : plan.steps;
    if (!one.report->stopped && one.report->step != steps)
      return about(rank, "ended well after {} of {} steps", one.report->step, steps);
  }
  return {};
}

// A message of a process that is lost may have come to some and not to others: so a step may be
// whole for some. A process that asks to stop, throws or leaves has done its part for all.
std::string all_end_with_one_step(const meeting_course& course) {
  auto is_lost = [](const meeting_trouble& one) {
    return one.kind == trouble_kind::crash || one.is_silence();
  };
  uint64_t slack = std::ranges::any_of(course.plan.troubles, is_lost) ? 1 : 0;
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  bool has_failed = false;
  for (uint32_t rank = 0; rank < course.plan.processes; ++rank) {
    const auto& one = course.processes[rank];
    if (!lives(course, rank) || !one.report) continue;
    has_failed |= one.failure().code != errc::none;
    first = std::min(first, one.report->step);
    last = std::max(last, one.report->step);
  }
  if (last == 0 || last - first <= (has_failed ? slack : 0)) return {};
  return fmt::format("one process ends after {} steps, another one after {}", first, last);
}

std::string unlike(const meeting_values& values, const meeting_values& serial) {
  for (size_t i = 0; i < serial.size(); ++i)
    if (!is_equal(values[i], serial[i])) return i == 0 ? "w" : "b";
  return {};
}

// Where a step was not whole its update may have been made: by all that have a next one.
std::string variables_are_the_serial_loops(const meeting_course& course) {
  auto serial = serial_meeting(course.plan);
  for (uint32_t rank = 0; rank < course.plan.processes; ++rank) {
    const auto& one = course.processes[rank];
    if (!one.differs.empty()) return one.differs;
    for (const auto& [updates, values] : one.read)
      if (auto name = unlike(values, serial.at(updates)); !name.empty())
        return about(rank, "read another {} after {} updates than a serial loop makes", name,
                     updates);
    if (!one.last || !one.report) continue;
    auto step = one.report->step;
    auto is_as_after = [&](uint64_t updates) {
      return updates < serial.size() && unlike(*one.last, serial[updates]).empty();
    };
    if (is_as_after(step)) continue;
    if (!one.report->failure || !is_as_after(step + 1))
      return about(rank, "holds other variables after step {} than a serial loop makes", step);
  }
  return {};
}

// A process that has heard that a step is whole has heard so from all.
std::string a_step_that_is_whole_was_made_by_all(const meeting_course& course) {
  auto serial = serial_meeting(course.plan);
  uint64_t whole = 0;
  for (uint32_t rank = 0; rank < course.plan.processes; ++rank)
    if (const auto& one = course.processes[rank]; one.report)
      whole = std::max(whole, one.report->step);
  for (uint32_t rank = 0; rank < course.plan.processes; ++rank) {
    const auto& one = course.processes[rank];
    if (!one.last) continue;
    if (one.report->step < whole && !unlike(*one.last, serial[whole]).empty())
      return about(rank, "has not made step {}, which another one has as whole", whole);
  }
  return {};
}

std::string snapshots_are_of_whole_steps(const meeting_course& course) {
  auto serial = serial_meeting(course.plan);
  auto replicas = static_cast<double>(course.plan.replicas());
  for (const auto& snapshot : course.snapshots)
    for (const auto& variable : snapshot.variables) {
      auto value = variable.state.value;
      auto is_ballot = variable.name == "ballot";
      auto is_right
        = is_ballot
            ? numbers_of(value)
                == numbers{static_cast<double>(snapshot.step) * replicas * (replicas + 1) / 2}
            : is_equal(value, serial[snapshot.step][variable.name == "w" ? 0 : 1]);
      if (!is_right)
        return fmt::format("the snapshot of step {} holds another {} than a serial loop makes",
                           snapshot.step, variable.name);
    }
  const auto& first = course.processes[0];
  if (!lives(course, 0) || !first.report || first.failure().code != errc::none) return {};
  if (course.snapshots.empty() || course.snapshots.back().step != first.report->step)
    return fmt::format("the last step, {}, was not saved", first.report->step);
  return {};
}

std::string nothing_is_left(const meeting_course& course) {
  return course.actors_left == 0 ? std::string{}
                                 : fmt::format("{} actors are left", course.actors_left);
}

/// One thing that must hold.
struct meeting_checker {
  const char* promise;
  std::string (*complaint)(const meeting_course& course);
};

constexpr std::array all_checkers{
  meeting_checker{"every wait ends", every_wait_ends},
  meeting_checker{"all processes end in time", in_time},
  meeting_checker{"what passes makes no process fail", a_failure_has_a_cause},
  meeting_checker{"a process that fails names who is at fault", who_is_at_fault_is_named},
  meeting_checker{"a process that does not fail has made all steps, or was asked to stop",
                  a_job_that_does_not_fail_is_whole},
  meeting_checker{"all processes end with the same step", all_end_with_one_step},
  meeting_checker{"variables are those of a serial loop, to the last bit",
                  variables_are_the_serial_loops},
  meeting_checker{"a step that is whole for one process was made by all",
                  a_step_that_is_whole_was_made_by_all},
  meeting_checker{"snapshots are of whole steps, and of the last one",
                  snapshots_are_of_whole_steps},
  meeting_checker{"no actor is left", nothing_is_left},
};

} // namespace

std::string judge(const meeting_course& course) {
  std::string lines;
  for (const auto& one : all_checkers)
    if (auto complaint = one.complaint(course); !complaint.empty())
      lines += fmt::format("  {}: {}\n", one.promise, complaint);
  return lines.empty() ? lines : fmt::format("{}\n{}", course.plan.describe(), lines);
}

} // namespace troupe::test
