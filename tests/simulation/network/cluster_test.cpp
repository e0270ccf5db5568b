// SPDX-License-Identifier: Apache-2.0
// Goal: the network and the time of service explain what others measured. Method: whole jobs in
// virtual time, held against published medians from a few constants.
// Source: Abadi et al., "TensorFlow: a system for large-scale machine learning", OSDI 2016, figures
// 7 and 8; and the logs of a job with one saturated parameter server.
#include "simulation/distributions/computing_time.hpp"
#include "simulation/distributions/distribution.hpp"
#include "simulation/scenario.hpp"
#include "simulation/statistics.hpp"
#include "tests/doctest.hpp"

#include <map>

namespace cluster_test {

using namespace std::chrono_literals;
using namespace troupe;

namespace {

double median_step(const scenario_report& report) {
  REQUIRE_FALSE(report.job.failure);
  std::vector<double> times;
  for (size_t i = report.step_times.size() / 4; i < report.step_times.size(); ++i)
    times.push_back(std::chrono::duration<double>(report.step_times[i]).count());
  return sorted_values{std::move(times)}.quantile(0.5);
}

scenario null_steps(uint32_t replicas, job_time latency) {
  scenario what{.sync = {replicas, replicas, sync_policy::latest_token}, .steps = 8};
  what.compute = constant_time(0s);
  what.network = network_options{.owners = 16};
  what.network->latency = [latency](const passage&) { return latency; };
  return what;
}

constexpr int latencies_a_step = 6;

} // namespace

TEST_SUITE("simulation/network/cluster") {
  TEST_CASE("null steps of a scalar take 1.8 ms, and 70.7 us more for each replica") {
    constexpr auto service = 70'700ns;
    auto fixed = (1'800'000ns - service) / latencies_a_step;
    for (uint32_t replicas : {1U, 10U, 25U, 50U, 100U}) {
      auto what = null_steps(replicas, fixed);
      what.network->service = [](uint32_t, uint64_t) { return service; };
      CAPTURE(replicas);
      CHECK(median_step(simulate(what))
            == doctest::Approx(0.0018 + 70.7e-6 * (replicas - 1)).epsilon(0.02));
    }
  }

  TEST_CASE("null steps that read a dense model are bound by cards of 1 GB/s") {
    // Seconds: measured with 1 and with 100 replicas.
    const std::map<uint64_t, std::pair<double, double>> measured{{100'000'000, {0.147, 0.613}},
                                                                 {1'000'000'000, {1.01, 7.16}}};
    for (const auto& [bytes, seconds] : measured)
      for (uint32_t replicas : {1U, 100U}) {
        auto what = null_steps(replicas, 45ms / latencies_a_step);
        what.steps = 3;
        what.network->bytes_per_second = 1e9;
        what.network->model_bytes = bytes;
        auto expected = replicas == 1 ? seconds.first : seconds.second;
        CAPTURE(bytes);
        CAPTURE(replicas);
        CHECK(median_step(simulate(what)) == doctest::Approx(expected).epsilon(0.15));
      }
  }

  TEST_CASE("where one card is saturated, waiting for fewer saves nothing") {
    std::map<uint32_t, double> mean;
    for (uint32_t needed : {1U, 10U, 30U, 49U, 50U}) {
      scenario what{.sync = {needed, 50}, .steps = 60, .seed = 1};
      what.compute = distribution::parse("lognormal(0.02, 0.1)").value().times(1);
      what.network = network_options{.bytes_per_second = 50e6, .gradient_bytes = 5'000'000};
      mean[needed] = simulate(what).mean_step_seconds(10);
    }
    for (const auto& [needed, seconds] : mean) {
      CAPTURE(needed);
      CHECK(seconds == doctest::Approx(mean[50]).epsilon(0.01));
    }
  }
}

} // namespace cluster_test
