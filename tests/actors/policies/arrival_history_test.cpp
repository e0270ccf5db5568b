// SPDX-License-Identifier: Apache-2.0
// Goal: what is known of the time to the k-th gradient is used, and what is not is tried. Method:
// records of steps, made by hand.
#include "actors/policies/arrival_history.hpp"
#include "tests/doctest.hpp"

namespace arrival_history_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using times = std::vector<double>;

const std::vector<uint32_t> three{0, 1, 2};

/// The step after `local_step`, from `began` on.
step_record step_of(uint64_t local_step, job_time began, job_time ended) {
  return {.step = local_step + 1, .began = began, .ended = ended};
}

contribution contribution_of(uint32_t replica, uint64_t local_step, job_time arrived,
                             job_time compute = 0s) {
  return {.replica = replica, .local_step = local_step, .arrived = arrived, .compute = compute};
}

} // namespace

TEST_SUITE("actors/policies/arrival_history") {
  TEST_CASE("the time to the k-th gradient is the mean over steps, whichever replica gave it") {
    arrival_history seen{20, 100};
    auto first = step_of(0, 0s, 3s);
    first.accepted
      = {contribution_of(2, 0, 1s), contribution_of(0, 0, 2s), contribution_of(1, 0, 3s)};
    auto second = step_of(1, 3s, 10s);
    second.accepted
      = {contribution_of(0, 1, 6s), contribution_of(1, 1, 7s), contribution_of(2, 1, 10s)};
    seen.add(first);
    seen.add(second);
    CHECK(seen.expected_times(three, 10s) == times{2, 3, 5});
  }

  TEST_CASE("a gradient that its step did not wait for completes the row when it comes") {
    arrival_history seen{20, 100};
    auto first = step_of(0, 0s, 1s);
    first.accepted = {contribution_of(0, 0, 1s), contribution_of(1, 0, 1s)};
    seen.add(first);
    CHECK(seen.expected_times(three, 1s) == times{1, 1, 1});
    CHECK(seen.expected_times(three, 4s) == times{1, 1, 4}); // it is at least so late
    auto second = step_of(1, 1s, 5s);
    second.accepted = {contribution_of(0, 1, 5s), contribution_of(1, 1, 5s)};
    second.stale = {contribution_of(2, 0, 5s, 5s)};
    seen.add(second);
    CHECK(seen.expected_times(three, 5s) == times{2.5, 2.5, 5});
  }

  TEST_CASE("one that was busy when a step began is taken for as late as it always is") {
    arrival_history seen{20, 100};
    auto first = step_of(0, 0s, 1s);
    first.accepted = {contribution_of(0, 0, 1s)};
    auto second = step_of(1, 1s, 2s);
    second.accepted = {contribution_of(0, 1, 2s)};
    auto third = step_of(2, 2s, 3s);
    third.accepted = {contribution_of(0, 2, 3s)};
    third.stale = {contribution_of(1, 0, 2500ms, 2500ms)};
    for (const auto& step : {first, second, third})
      seen.add(step);
    CHECK(seen.expected_times({0, 1}, 3s) == times{1, 2.5});
  }

  TEST_CASE("a replica that was told to stop may have been done a moment later") {
    arrival_history seen{20, 100};
    auto first = step_of(0, 0s, 3s);
    first.accepted = {contribution_of(0, 0, 1s), contribution_of(1, 0, 3s)};
    first.cancelled = {contribution_of(2, 0, 3s)};
    seen.add(first);
    CHECK(seen.expected_times(three, 90s) == times{1, 3, 3});
  }

  TEST_CASE("steps that have seen the k-th gradient count, and of those the newest") {
    arrival_history seen{2, 100};
    for (uint64_t i = 0; i < 4; ++i) {
      job_time began = 10s * i;
      auto step = step_of(i, began, began + 5s);
      step.accepted = {contribution_of(0, i, began + 1s * (i + 1))};
      if (i < 2) step.accepted.push_back(contribution_of(1, i, began + 5s));
      if (i >= 2) step.cancelled = {contribution_of(1, i, began + 4s)};
      seen.add(step);
    }
    CHECK(seen.expected_times({0, 1}, 40s) == times{3.5, 5});
  }

  TEST_CASE("a time that was seen too long ago is forgotten") {
    arrival_history seen{1, 2};
    auto slow = step_of(0, 0s, 50s);
    slow.accepted = {contribution_of(0, 0, 1s), contribution_of(1, 0, 50s)};
    seen.add(slow);
    CHECK(seen.expected_times({0, 1}, 50s) == times{1, 50});
    for (uint64_t i = 1; i < 3; ++i) {
      auto step = step_of(i, 50s + 1s * i, 51s + 1s * i);
      step.accepted = {contribution_of(0, i, 51s + 1s * i)};
      step.cancelled = {contribution_of(1, i, 51s + 1s * i)};
      seen.add(step);
    }
    CHECK(seen.expected_times({0, 1}, 60s) == times{1, 1});
  }

  TEST_CASE("replicas that are gone are left out") {
    arrival_history seen{20, 100};
    auto step = step_of(0, 0s, 9s);
    step.accepted
      = {contribution_of(0, 0, 1s), contribution_of(1, 0, 9s), contribution_of(2, 0, 2s)};
    seen.add(step);
    CHECK(seen.expected_times({0, 2}, 9s) == times{1, 2});
    CHECK(seen.expected_times({0, 2, 7}, 20s) == times{1, 2, 20});
  }
}

} // namespace arrival_history_test
