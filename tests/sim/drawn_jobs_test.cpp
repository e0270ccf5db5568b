// SPDX-License-Identifier: Apache-2.0
// Goal: whatever goes wrong, a job keeps its promises. Method: whole jobs with drawn faults in the
// virtual world, one for each seed, judged by checkers; and proof that the rare paths were reached.
#include "kernels/tensor/buffer.hpp"
#include "tests/doctest.hpp"
#include "tests/sim/checkers.hpp"
#include "tests/sim/stuck_alarm.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <span>
#include <string>

namespace drawn_jobs_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr uint64_t seeds = 200;

// Each of these paths must occur in some job; otherwise nothing was tested.
constexpr const char* rare_paths[] = {"fault crash",
                                      "fault crash_with_token",
                                      "fault corrupt",
                                      "fault restart",
                                      "fault freeze",
                                      "fault partition",
                                      "fault slow",
                                      "fault clog",
                                      "lost PushGradient",
                                      "duplicated PushGradient",
                                      "lost Token",
                                      "duplicated Token",
                                      "reordered PushGradient",
                                      "held PushGradient",
                                      "job restarts",
                                      "stale after a fault",
                                      "dynamic",
                                      "distinct",
                                      "local steps",
                                      "cards",
                                      "service",
                                      "dead",
                                      "churn",
                                      "all needed, two away",
                                      "fault skew",
                                      "fault given up",
                                      "given up node",
                                      "delivered EnterJob",
                                      "late start",
                                      "came late",
                                      "entered again",
                                      "refused",
                                      "left together",
                                      "held twice",
                                      "held twice over bad links",
                                      "delivered TookOver",
                                      "taken over over bad links"};

// Whether it is the first life of its process in a job that had begun without it.
bool came_late(const process_life& life, std::span<const process_life> all) {
  return std::ranges::any_of(all,
                             [&](const process_life& other) {
                               return other.attempt == life.attempt && other.began
                                      && *other.began < life.entered;
                             })
         && std::ranges::none_of(all, [&](const process_life& other) {
              return other.attempt == life.attempt && other.node == life.node
                     && other.entered < life.entered;
            });
}

void add(std::map<std::string, uint64_t>& reached, const evidence& course) {
  for (const auto& [what, count] : course.report.probes)
    reached[what] += count;
  reached["job restarts"] += course.report.restarts;
  const auto& what = course.what;
  reached["dynamic"] += what.sync.dynamic ? 1 : 0;
  reached["distinct"] += what.sync.one_gradient_per_replica ? 1 : 0;
  reached["local steps"] += what.local_sgd.local_steps > 1 ? 1 : 0;
  reached["cards"] += what.network->bytes_per_second > 0 ? 1 : 0;
  reached["service"] += what.network->service ? 1 : 0;
  reached["dead"] += what.dead_replicas.size();
  reached["churn"] += what.faults.rates.is_empty() ? 0 : 1;
  reached["held twice"] += what.replicate_owners > 1 ? 1 : 0;
  if (what.replicate_owners > 1 && what.faults.loses_messages()) {
    ++reached["held twice over bad links"];
    reached["taken over over bad links"] += course.report.probes.count("delivered TookOver");
  }
  if (what.sync.replicas_to_aggregate == what.sync.total_num_replicas
      && course.report.job.lost.size() > 1)
    ++reached["all needed, two away"];
  reached["late start"] += course.what.late_starts.size();
  for (const auto& life : course.report.processes) {
    reached["entered again"] += life.began && life.first_step > 0 ? 1 : 0;
    reached["refused"] += life.refused ? 1 : 0;
    reached["left together"] += life.left ? 1 : 0;
    reached["came late"] += came_late(life, course.report.processes) ? 1 : 0;
  }
  if (!course.what.faults.is_empty()) reached["stale after a fault"] += course.report.stale;
}

} // namespace

TEST_SUITE("sim/drawn_jobs") {
  TEST_CASE(
    "200 jobs with drawn faults keep every promise, and every kind of fault was among them") {
    std::map<std::string, uint64_t> reached;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      auto course = run_drawn_job(seed);
      auto complaints = judge(*course);
      auto command = fmt::format(replay_command, seed);
      INFO("replay with: ", command);
      CHECK_MESSAGE(complaints.empty(), complaints);
      add(reached, *course);
    }
    for (const auto* path : rare_paths)
      CHECK_MESSAGE(reached[path] > 0, "no seed reached: " << std::string{path});
  }

  TEST_CASE("one seed is one course, to the last bit") {
    for (uint64_t seed : {3, 14, 15, 92, 65}) {
      auto first = run_drawn_job(seed);
      auto second = run_drawn_job(seed);
      CHECK(first->report.log_hash == second->report.log_hash);
      CHECK(first->report.probes == second->report.probes);
      REQUIRE(first->values.size() == second->values.size());
      for (size_t i = 0; i < first->values.size(); ++i)
        CHECK(
          std::memcmp(first->values[i].data(), second->values[i].data(), first->values[i].bytes())
          == 0);
    }
  }

  TEST_CASE("a job leaves no memory behind") {
    static_cast<void>(run_drawn_job(1));
    auto before = cpu_pool().bytes_in_use();
    for (uint64_t seed = 2; seed <= 12; ++seed)
      static_cast<void>(run_drawn_job(seed));
    CHECK(cpu_pool().bytes_in_use() == before);
  }
}

} // namespace drawn_jobs_test
