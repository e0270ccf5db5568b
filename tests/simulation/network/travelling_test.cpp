// SPDX-License-Identifier: Apache-2.0
// Goal: what messages take between nodes shows in step times, and only there. Method: whole jobs in
// virtual time, held against sums of latencies and against theory.
#include "actors/recording/seconds.hpp"
#include "messages/mapped.hpp"
#include "simulation/distributions/computing_time.hpp"
#include "simulation/distributions/distribution.hpp"
#include "simulation/scenario.hpp"
#include "simulation/statistics.hpp"
#include "tests/doctest.hpp"
#include "tests/simulation/target.hpp"

#include <string_view>

namespace travelling_test {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

scenario constant(uint32_t needed, uint32_t replicas, sync_policy policy = sync_policy::tensorflow,
                  uint64_t steps = 12) {
  return {.sync = {needed, replicas, policy}, .steps = steps};
}

network_options with_latency(job_time latency) {
  network_options options;
  options.latency = [latency](const passage&) { return latency; };
  return options;
}

// As in the model that the numbers are of.
network_options gradients_and_tokens_take(job_time latency) {
  network_options options;
  options.latency = [latency](const passage& goes) {
    auto counts = goes.kind == "PushGradient"sv || goes.kind == "Token"sv;
    return counts ? latency : job_time{0};
  };
  return options;
}

double last_step(const scenario_report& report) {
  REQUIRE_FALSE(report.job.failure);
  return seconds(report.step_times.back());
}

} // namespace

TEST_SUITE("simulation/network") {
  TEST_CASE("gradients and tokens that travel for 0.01 s add 0.02 s to each step") {
    // Source of the number: E T(96:100) of exp(1), and the two latencies.
    auto far = constant(96, 100, sync_policy::cancel, 1000);
    far.compute = exponential_time(1s, 3);
    far.network = gradients_and_tokens_take(10ms);
    auto report = simulate(far);
    auto times = mapped(report.step_times, [](auto time) { return seconds(time); });
    check_mean(estimate_of(batch_means(times)), 3.1040442 + 0.02);
  }

  TEST_CASE(
    "among 10,000 replicas the two latencies are all that a network adds (half a minute: by "
    "--no-skip)"
    * doctest::skip()) {
    // Source of the number: E T(9600:10000) of exp(1), and the two latencies.
    auto far = constant(9600, 10'000, sync_policy::cancel, 30);
    far.compute = exponential_time(1s, 3);
    far.network = gradients_and_tokens_take(10ms);
    auto report = simulate(far);
    auto times = mapped(report.step_times, [](auto time) { return seconds(time); });
    check_mean(estimate_of(times), 3.2376763);
  }

  TEST_CASE("a network without latency changes no step") {
    for (auto policy : {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel}) {
      auto plain = constant(4, 5, policy, 40);
      plain.compute = exponential_time(1s, 3);
      auto networked = plain;
      networked.network = network_options{.owners = 2};
      CHECK(simulate(plain).step_times == simulate(networked).step_times);
    }
  }

  TEST_CASE("a step that waits for all takes six one-way latencies") {
    // Reading and the value, the gradient and its verdict, the question for a token and the token.
    // The chief's other messages meanwhile take less.
    auto far = constant(5, 5);
    far.network = with_latency(10ms);
    CHECK(last_step(simulate(far)) == doctest::Approx(1.06));
  }

  TEST_CASE("the same links draw the same run") {
    auto far = constant(9, 10, sync_policy::tensorflow, 50);
    far.compute = exponential_time(1s, 3);
    far.network = network_options{.owners = 3};
    auto latency = distribution::parse("exponential(0.05)").value().times(5);
    far.network->latency = [latency](const passage& goes) { return latency(goes.end, goes.count); };
    auto first = simulate(far);
    CHECK(simulate(far).log_hash == first.log_hash);
    CHECK(first.probes.at("delivered PushGradient") >= 50 * 9 * 3);
  }
}

} // namespace travelling_test
