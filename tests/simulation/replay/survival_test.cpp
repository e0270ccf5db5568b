// SPDX-License-Identifier: Apache-2.0
// Goal: times of computations that were cut are drawn as long as they would have been, and replicas
// of which that cannot be known are told. Method: an example by hand, and known distributions of
// which the longer times are cut.
#include "simulation/distributions/computing_time.hpp"
#include "simulation/replay/survival.hpp"
#include "tests/doctest.hpp"

namespace survival_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

// Exponential times of a mean of 1 s, times `factor`; those that are longer than `cut` are cut.
std::vector<recorded_time> cut_times(uint32_t replica, double factor, job_time cut, int count) {
  auto times = exponential_time(1s, 4);
  std::vector<recorded_time> result;
  for (int i = 0; i < count; ++i) {
    job_time time{static_cast<int64_t>(
      factor * static_cast<double>(times(replica, static_cast<uint64_t>(i)).count()))};
    result.push_back({std::min(time, cut), time > cut});
  }
  return result;
}

double mean_of_longer(const survival_estimate& estimate, job_time least) {
  double sum = 0;
  for (int i = 0; i < 1000; ++i)
    sum
      += std::chrono::duration<double>(estimate.longer_than(least, (i + 0.5) / 1000, true)).count();
  return sum / 1000;
}

} // namespace

TEST_SUITE("simulation/replay") {
  TEST_CASE("the estimate is that of Kaplan and Meier") {
    // At risk: 5, 4, 2. Surviving: 4/5, 3/5, 3/10. Hazards: 1/5, 1/4, 1/2.
    survival_estimate estimate{{{1s, false}, {2s, false}, {3s, true}, {4s, false}, {9s, true}}};
    CHECK(estimate.completed_count() == 3);
    CHECK(estimate.longest_completed() == 4s);
    CHECK(estimate.hazard_until(500ms) == 0);
    CHECK(estimate.hazard_until(2s) == doctest::Approx(0.45));
    CHECK(estimate.hazard_until(5s) == doctest::Approx(0.95));
    // Half of the times beyond 2 s are 4 s.
    CHECK(estimate.longer_than(2s, 0.9, true) == 4s);
    CHECK(estimate.longer_than(2s, 0.51, true) == 4s);
    CHECK(estimate.longer_than(2s, 0.49, true) > 4s);
    CHECK(estimate.longer_than(2s, 0.49, false) == 4s);
    CHECK(estimate.longer_than(6s, 0.5, false) == job_time{6s} + 1ns);
  }

  TEST_CASE("cut times are as long as they would have been") {
    survival_estimate estimate{cut_times(0, 1, 1s, 4000)};
    CHECK(mean_of_longer(estimate, 500ms) == doctest::Approx(1.5).epsilon(0.05));
    CHECK(mean_of_longer(estimate, 1s) == doctest::Approx(2).epsilon(0.07));
    CHECK(mean_of_longer(estimate, 3s) == doctest::Approx(4).epsilon(0.07));
  }

  TEST_CASE("a time without one that is longer is known at least") {
    survival_estimate none{{}};
    CHECK(none.longer_than(3s, 0.5, true) == job_time{3s} + 1ns);
    survival_estimate all_cut{{{1s, true}, {2s, true}}};
    CHECK(all_cut.longer_than(3s, 0.5, true) == job_time{3s} + 1ns);
  }

  TEST_CASE("replicas that are alike are estimated together, others by themselves") {
    std::vector<std::vector<recorded_time>> replicas;
    for (uint32_t i = 0; i < 4; ++i)
      replicas.push_back(cut_times(i, 1, 1s, 300));
    replicas.push_back(cut_times(4, 0.3, 1s, 300)); // three times as fast
    replicas.push_back(cut_times(5, 100, 1s, 300)); // never completed, or nearly so
    replicas.emplace_back();                        // never came
    auto groups = survival_groups_of(replicas);
    CHECK(groups.is_alike == std::vector<bool>{true, true, true, true, false, false, true});
    CHECK(groups.is_unknown == std::vector<bool>{false, false, false, false, false, true, false});
    CHECK(mean_of_longer(groups.of(0), 0s) == doctest::Approx(1).epsilon(0.07));
    CHECK(mean_of_longer(groups.of(4), 0s) == doctest::Approx(0.3).epsilon(0.1));
  }
}

} // namespace survival_test
