// SPDX-License-Identifier: Apache-2.0
// Goal: what is recalled under way leaves the cards to the others, as over sockets. Method: jobs of
// four replicas and one card, with times that can be told by heart.
#include "actors/recording/seconds.hpp"
#include "simulation/scenario.hpp"
#include "tests/doctest.hpp"

namespace recall_test {

using namespace std::chrono_literals;
using namespace troupe;

namespace {

/// The fourth replica begins to push half a second after the others, to a card that all share.
scenario one_is_late(sync_policy policy) {
  scenario what{.sync = {3, 4, policy}, .steps = 2};
  what.compute = [](uint32_t replica, uint64_t computation) -> job_time {
    if (replica == 3) return computation == 0 ? 1500ms : 10s;
    return computation == 0 ? 1s : 50ms;
  };
  what.network = network_options{.bytes_per_second = 1e6, .gradient_bytes = 1'000'000};
  return what;
}

uint64_t recalled(const scenario_report& report) {
  auto found = report.probes.find("recalled PushGradient");
  return found == report.probes.end() ? 0 : found->second;
}

constexpr double nearly = 1e-6; // an event comes a nanosecond after what it is about

} // namespace

TEST_SUITE("simulation/network/recall") {
  TEST_CASE("under cancel a gradient that is late is not sent to its end") {
    auto report = simulate(one_is_late(sync_policy::cancel));
    CHECK_FALSE(report.job.failure);
    CHECK(recalled(report) == 1);
    CHECK(report.probes.at("delivered PushGradient") == 6);
    // Three gradients of a second each, and half a second's worth of the fourth's before it had
    // begun, or not.
    CHECK(seconds(report.step_times[0]) == doctest::Approx(4.0 + 5.0 / 6).epsilon(nearly));
    CHECK(seconds(report.step_times[1]) == doctest::Approx(3.05).epsilon(nearly));
  }

  TEST_CASE("under the other policies it is, and slows down the next step's") {
    auto report = simulate(one_is_late(sync_policy::latest_token));
    CHECK_FALSE(report.job.failure);
    CHECK(recalled(report) == 0);
    CHECK(report.probes.at("delivered PushGradient") == 7);
    // A sixth of it is left, of which 50 ms pass before the others begin.
    auto rest = 1.0 / 6 - 0.05;
    CHECK(seconds(report.step_times[1]) == doctest::Approx(3.05 + rest).epsilon(nearly));
  }

  TEST_CASE(
    "a replica that has recalled it goes on with the next step, and counts it as cancelled") {
    auto what = one_is_late(sync_policy::cancel);
    what.compute = [](uint32_t replica, uint64_t computation) -> job_time {
      return replica == 3 && computation == 0 ? 1500ms : 1s;
    };
    what.sync.replicas_to_aggregate = 4;
    auto waits = simulate(what);
    CHECK(recalled(waits) == 0);
    what.sync.replicas_to_aggregate = 3;
    what.steps = 3;
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(recalled(report) >= 1);
    CHECK(report.accepted + report.stale + report.cancelled >= 3 * 4);
  }

  TEST_CASE("where bytes take no time there is nothing to recall") {
    auto what = one_is_late(sync_policy::cancel);
    what.network = network_options{.latency = [](const passage&) { return 100ms; }};
    what.steps = 20;
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    CHECK(recalled(report) == 0);
  }
}

} // namespace recall_test
