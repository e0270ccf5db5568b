// SPDX-License-Identifier: Apache-2.0
// Goal: whatever becomes of the processes of a `multi_worker_mirrored_strategy`, those that live
// end alike, with the bits of a serial loop, or go on as if nothing had happened. Method: whole
// jobs of several programs in one virtual world, with troubles drawn from a seed, judged by
// checkers; and proof that every kind of trouble struck.
#include "kernels/tensor/buffer.hpp"
#include "tests/doctest.hpp"
#include "tests/sim/meeting_job.hpp"
#include "tests/sim/stuck_alarm.hpp"

#include <fmt/format.h>
#include <map>

namespace meeting_jobs_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr uint64_t seeds = 300;

// How a trouble ended, and what else has to have been reached.
constexpr const char* rare_paths[] = {"crash, failed",          "crash before the first step",
                                      "crash amid the steps",   "crash of the first process",
                                      "freeze, failed",         "freeze, outlasted",
                                      "partition, failed",      "partition, outlasted",
                                      "unheard, failed",        "unheard, outlasted",
                                      "slow, outlasted",        "leaves, failed",
                                      "throws, failed",         "stops, outlasted",
                                      "late, failed",           "late, outlasted",
                                      "absent, failed",         "no trouble",
                                      "stopped before its end", "a step whole for some",
                                      "two troubles",           "resumed",
                                      "held CollectivePart"};

void add(std::map<std::string, uint64_t>& reached, const meeting_course& course) {
  const auto& plan = course.plan;
  bool has_failed = false;
  std::set<uint64_t> steps;
  for (const auto& one : course.processes) {
    if (one.was_killed) continue;
    has_failed |= one.failure().code != errc::none;
    if (!one.report) continue;
    steps.insert(one.report->step);
    reached["stopped before its end"] += one.report->stopped && one.report->step < plan.steps;
  }
  // A trouble that comes after the job has struck no process.
  for (size_t i = 0; i < plan.troubles.size(); ++i) {
    const auto& one = plan.troubles[i];
    auto step = course.step_at.find(i);
    auto has_struck = step != course.step_at.end() && step->second + 1 < plan.steps;
    if (!has_struck) continue;
    reached[fmt::format("{}, {}", to_string(one.kind), has_failed ? "failed" : "outlasted")] += 1;
    if (one.kind != trouble_kind::crash) continue;
    reached[step->second == 0 ? "crash before the first step" : "crash amid the steps"] += 1;
    reached["crash of the first process"] += one.who == 0;
  }
  reached["no trouble"] += plan.troubles.empty();
  reached["two troubles"] += plan.troubles.size() > 1;
  reached["a step whole for some"] += steps.size() > 1;
  reached["held CollectivePart"] += course.counts.contains("held CollectivePart");
}

std::string replay(uint64_t seed) {
  return fmt::format(replay_meeting_command, seed);
}

} // namespace

TEST_SUITE("sim/meeting_jobs") {
  TEST_CASE(
    "300 jobs of several processes keep every promise, and every kind of trouble was among them") {
    std::map<std::string, uint64_t> reached;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      auto course = run_meeting(draw_meeting(seed));
      auto complaints = judge(course);
      INFO("replay with: ", replay(seed));
      CHECK_MESSAGE(complaints.empty(), complaints);
      add(reached, course);
      auto rest = resumed(course);
      if (!rest) continue;
      complaints = judge(run_meeting(*rest));
      CHECK_MESSAGE(complaints.empty(), complaints);
      ++reached["resumed"];
    }
    for (const auto* path : rare_paths)
      CHECK_MESSAGE(reached[path] > 0, "no seed reached: " << std::string{path});
  }

  TEST_CASE("one seed is one course, to the last message") {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      auto first = run_meeting(draw_meeting(seed));
      auto second = run_meeting(draw_meeting(seed));
      INFO("replay with: ", replay(seed));
      CHECK(first.log_hash == second.log_hash);
      CHECK(first.counts == second.counts);
    }
  }

  TEST_CASE("a job of several processes leaves no memory behind") {
    static_cast<void>(run_meeting(draw_meeting(1)));
    auto before = cpu_pool().bytes_in_use();
    for (uint64_t seed = 2; seed <= 22; ++seed)
      static_cast<void>(run_meeting(draw_meeting(seed)));
    CHECK(cpu_pool().bytes_in_use() == before);
  }
}

} // namespace meeting_jobs_test
