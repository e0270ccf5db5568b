// SPDX-License-Identifier: Apache-2.0
// Goal: a chief that chooses the number of backups waits for as many replicas as help by their
// gradients, and never for more than there are. Method: small jobs in virtual time with gradients
// drawn around a target.
#include "messages/mapped.hpp"
#include "tests/strategies/small_job.hpp"

#include <algorithm>

namespace dynamic_backups_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

sync_options chosen(uint32_t replicas, const dynamic_backups& how = {},
                    sync_policy policy = sync_policy::latest_token) {
  sync_options options{replicas, replicas, policy};
  options.dynamic = how;
  return options;
}

/// The last of four takes four times as long.
job_time one_is_slow(uint32_t replica, uint64_t, job_time) {
  return replica == 3 ? 4s : 1s;
}

/// The number of gradients that each step needed.
std::vector<uint32_t> needed_of(const course& seen) {
  return mapped(seen.steps, &step_record::needed);
}

/// A job with gradients of 1 in each element, and noise.
course run_noisy(small_job& job, double deviation, training_options options) {
  auto step = [&job, deviation](replica_context& context) -> task<void> {
    tensor gradient{dtype::f64, job.weights.extents()};
    random_stream draws{context.random("noise")};
    for (auto& element : gradient.mutable_values<double>())
      element = 1 + deviation * draws.normal();
    auto giving = give(context, job.optimizer, job.weights, gradient);
    co_await giving;
  };
  return job.run(step, std::move(options));
}

} // namespace

TEST_SUITE("strategies/jobs/dynamic_backups") {
  TEST_CASE("the first step waits for all replicas, later ones not for slow ones") {
    small_job job{chosen(4, {.gain = gain_model::power})};
    auto seen = job.run_idle({.steps = 30, .pace = one_is_slow});
    auto needed = needed_of(seen);
    CHECK(needed.front() == 4);
    CHECK(std::all_of(needed.begin() + 1, needed.end(), [](uint32_t k) { return k == 3; }));
  }

  TEST_CASE("with clear gradients few are waited for, with noisy ones all") {
    for (auto [deviation, few] : {std::pair{0.01, true}, std::pair{20.0, false}}) {
      small_job job{chosen(4), 1, 200};
      auto seen = run_noisy(job, deviation, {.steps = 20, .pace = one_is_slow});
      CHECK_FALSE(seen.report.failure);
      auto needed = needed_of(seen);
      // Waiting for all three fast replicas costs no more time than waiting for the first.
      CHECK(needed.back() == (few ? 3U : 4U));
    }
  }

  TEST_CASE("gradients are measured where they are clipped together, too") {
    auto options = chosen(4);
    options.clip_global_norm = 0.5;
    small_job job{options, 1, 200};
    auto seen = run_noisy(job, 0.01, {.steps = 20, .pace = one_is_slow});
    CHECK_FALSE(seen.report.failure);
    CHECK(needed_of(seen).back() == 3);
  }

  TEST_CASE("a step needs no more gradients than replicas are left") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel}) {
      small_job job{chosen(3, {.gain = gain_model::power}, policy)};
      auto step = [&](replica_context& context) -> task<void> {
        auto computing = context.compute([](std::stop_token) { return 0; });
        co_await computing;
        if (context.replica_id_in_sync_group() == 1 && context.iteration() == 4)
          throw std::runtime_error{"it is gone"};
        auto giving = give(context, job.optimizer, job.weights, zeros({1}, dtype::f64));
        co_await giving;
      };
      auto seen = job.run(step, {.steps = 30, .pace = one_second});
      CHECK_FALSE(seen.report.failure);
      CHECK(seen.report.lost.size() == 1);
      REQUIRE(seen.steps.size() == 30);
      CHECK(seen.steps[2].needed == 3);
      CHECK(seen.steps.back().needed == 2);
    }
  }

  TEST_CASE("impossible choices of backups are refused") {
    auto options = chosen(4, {}, sync_policy::tensorflow);
    CHECK_FALSE(options.validate());
    for (const auto& backups :
         {dynamic_backups{.power = 0}, dynamic_backups{.curvature = 2},
          dynamic_backups{.window = 0}, dynamic_backups{.window = 9, .memory = 8}})
      CHECK_FALSE(chosen(4, backups).validate());
    CHECK(chosen(4).validate());
  }
}

} // namespace dynamic_backups_test
