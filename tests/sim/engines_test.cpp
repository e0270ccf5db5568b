// SPDX-License-Identifier: Apache-2.0
// Goal: the direct engine decides as the actors do. Method: jobs that are drawn, ties included, run
// by both engines and compared record by record; and proof that all kinds of jobs were among them.
#include "messages/errors/failure.hpp"
#include "tests/doctest.hpp"
#include "tests/sim/drawn_scenario.hpp"
#include "tests/sim/stuck_alarm.hpp"

#include <fmt/format.h>
#include <map>
#include <string>

namespace engines_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t seeds = 300;

void note_kinds(std::map<std::string, uint64_t>& met, const scenario& what,
                const scenario_report& report) {
  met[std::string{to_string(what.sync.policy)}] += 1;
  met["stalled"] += report.stalled ? 1 : 0;
  met["dynamic"] += what.sync.dynamic ? 1 : 0;
  met["distinct"] += what.sync.one_gradient_per_replica ? 1 : 0;
  met["initial tokens"] += what.sync.initial_tokens >= 0 ? 1 : 0;
  met["dead"] += what.dead_replicas.empty() ? 0 : 1;
  met["local steps"] += what.local_sgd.local_steps > 1 ? 1 : 0;
  met["update times"] += what.update ? 1 : 0;
  met["slack"] += what.sync.slack;
  met["stale"] += report.stale;
  met["cancelled"] += report.cancelled;
}

} // namespace

TEST_SUITE("sim/engines") {
  TEST_CASE("both engines write the same ledger, whatever the policy and its options") {
    std::map<std::string, uint64_t> met;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      auto what = draw_scenario(seed);
      auto actors = run_by(simulation_engine::actors, what);
      INFO("seed ", seed, ": ", describe(what),
           "; replay with: ", fmt::format(replay_engines_command, seed));
      CHECK(difference(actors, run_by(simulation_engine::direct, what)) == "");
      note_kinds(met, what, actors.report);
    }
    CHECK(met.size() == all_sync_policies.size() + 10);
    for (const auto& [kind, count] : met) {
      INFO(kind);
      CHECK(count > 0);
    }
  }

  TEST_CASE("where computing takes no time, all steps are made in no time") {
    for (auto policy : all_sync_policies) {
      CAPTURE(to_string(policy));
      scenario what{.sync = {1, 3, policy}, .steps = 20, .compute = constant_time(0s)};
      auto report = run_by(simulation_engine::direct, what).report;
      CHECK(report.step_times.size() == 20);
      CHECK(report.virtual_time == 0s);
    }
  }

  TEST_CASE("without a choice a job runs directly, unless something needs the actors") {
    auto what = draw_scenario(1);
    auto directly = run_by(simulation_engine::direct, what).report.events;
    CHECK(simulate(what).events == directly);
    what.deadline = 1'000'000s;
    CHECK(simulate(what).events > directly);
  }

  TEST_CASE("the direct engine refuses what only actors simulate, and says what that is") {
    auto refusal_of = [](scenario what) {
      what.engine = simulation_engine::direct;
      try {
        static_cast<void>(simulate(what));
      } catch (const failure& refused) {
        CHECK(refused.reason().code == errc::invalid_argument);
        return refused.reason().message;
      }
      return std::string{"none"};
    };
    scenario what{.sync = {2, 3}, .steps = 2};
    CHECK(refusal_of(what) == "none");
    what.deadline = 5s;
    CHECK(refusal_of(what) == "the direct engine cannot simulate a deadline; take the actors");
    what.replicate_owners = 2;
    CHECK(refusal_of(what)
          == "the direct engine cannot simulate owners with mirrors; take the actors");
    what.learning = learning_options{};
    CHECK(refusal_of(what)
          == "the direct engine cannot simulate something to learn; take the actors");
    what.faults.rates.crash_mean = 9s;
    CHECK(refusal_of(what) == "the direct engine cannot simulate faults; take the actors");
    what.network = network_options{};
    CHECK(refusal_of(what) == "the direct engine cannot simulate a network; take the actors");
  }
}

} // namespace engines_test
