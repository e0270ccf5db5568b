// SPDX-License-Identifier: Apache-2.0
// Goal: the three policies cost what their protocols say: wasted rounds, dead replicas, stalls and
// drops. Method: constant or drawn computing times in the virtual world, against exact numbers.
#include "tests/strategies/small_job.hpp"

namespace step_pattern_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr sync_policy all_policies[]
  = {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel};
constexpr sync_policy without_waste[] = {sync_policy::latest_token, sync_policy::cancel};

replica_list first_replicas(uint32_t count) {
  replica_list result;
  for (uint32_t i = 0; i < count; ++i)
    result.push_back(i);
  return result;
}

/// A job in which every gradient takes a second, and some replicas never come.
course constant(const sync_options& sync, uint32_t dead, uint64_t steps, uint64_t seed = 0) {
  small_job job{sync, seed};
  return job.run_idle({.steps = steps, .dead_replicas = first_replicas(dead), .pace = one_second});
}

/// A job in which a gradient takes a time drawn from an exponential distribution, 1 s on average.
course exponential(const sync_options& sync, uint64_t steps) {
  small_job job{sync};
  auto pace = [](uint32_t replica, uint64_t iteration, job_time) {
    random_stream draw{random_key{3, "pace", replica, iteration}};
    return job_time{static_cast<int64_t>(1e9 * draw.exponential())};
  };
  return job.run_idle({.steps = steps, .pace = pace});
}

using pattern = std::vector<double>;

} // namespace

TEST_SUITE("strategies/jobs/step_pattern") {
  TEST_CASE("tensorflow wastes one round at the start, with backups and without") {
    for (uint32_t needed : {50U, 46U})
      for (uint64_t seed : {0U, 1U}) {
        auto seen = constant({needed, 50}, 0, 8, seed);
        CHECK(seen.seconds() == pattern{1, 2, 1, 1, 1, 1, 1, 1});
        CHECK_FALSE(seen.report.failure);
      }
  }

  TEST_CASE("without tokens at the start tensorflow wastes nothing") {
    for (uint32_t needed : {50U, 46U})
      CHECK(constant({needed, 50, sync_policy::tensorflow, 0}, 0, 4).seconds()
            == pattern{1, 1, 1, 1});
  }

  TEST_CASE("the other policies waste nothing") {
    for (auto policy : without_waste)
      for (uint32_t needed : {50U, 46U})
        CHECK(constant({needed, 50, policy}, 0, 4).seconds() == pattern{1, 1, 1, 1});
  }

  TEST_CASE("one dead replica of 50 with 49 needed costs tensorflow half its speed") {
    auto seen = constant({49, 50}, 1, 40);
    auto seconds = seen.seconds();
    seconds.resize(8);
    CHECK(seconds == pattern{1, 2, 2, 1, 2, 1, 2, 1});
    CHECK(seen.mean_seconds(2) == doctest::Approx(1.5).epsilon(0.02));
    CHECK(seen.steps[7].live == 49);
  }

  TEST_CASE("one dead replica of 50 with 46 needed costs tensorflow a fifth") {
    auto seen = constant({46, 50}, 1, 52);
    auto seconds = seen.seconds();
    seconds.resize(12);
    CHECK(seconds == pattern{1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2});
    CHECK(seen.mean_seconds(2) == doctest::Approx(1.2));
  }

  TEST_CASE(
    "one gradient of each replica: the token of a dead one makes tensorflow wait each step") {
    sync_options sync{49, 50};
    sync.one_gradient_per_replica = true;
    auto seen = constant(sync, 1, 12);
    CHECK_FALSE(seen.report.failure);
    CHECK(seen.seconds() == pattern{1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
  }

  TEST_CASE(
    "one gradient of each replica: no step lacks a token, and as many are dropped as ever") {
    for (uint32_t needed : {16U, 14U, 9U}) {
      sync_options sync{needed, 16};
      sync.one_gradient_per_replica = true;
      auto seen = exponential(sync, 400);
      CHECK_FALSE(seen.report.failure);
      REQUIRE(seen.steps.size() == 400);
      for (const auto& step : seen.steps) {
        auto replicas = replicas_of(step.accepted);
        std::ranges::sort(replicas);
        CHECK(std::ranges::adjacent_find(replicas) == replicas.end());
      }
      auto law = 400.0 * (16 - needed);
      CHECK(std::abs(static_cast<double>(seen.stale_count()) - law) <= 2.0 * 16);
    }
  }

  TEST_CASE("one gradient of each replica: more dead ones than backups stall tensorflow, too") {
    sync_options sync{96, 100};
    sync.one_gradient_per_replica = true;
    auto seen = constant(sync, 5, 3);
    REQUIRE(seen.report.failure);
    CHECK(*seen.report.failure
          == error{errc::stalled,
                   "step 1 cannot end: it needs 96 gradients, 95 of 100 replicas are "
                   "live, and all of them have given the one that counts"});
    CHECK(seen.report.open == open_step{1, 95, 96, 96});
  }

  TEST_CASE("a dead backup costs the other policies nothing") {
    for (auto policy : without_waste)
      for (uint32_t needed : {49U, 46U})
        CHECK(constant({needed, 50, policy}, 1, 6).seconds() == pattern(6, 1));
    for (auto policy : without_waste)
      for (uint32_t dead = 1; dead <= 4; ++dead)
        CHECK(constant({96, 100, policy}, dead, 3).seconds() == pattern(3, 1));
  }

  TEST_CASE("more dead replicas than backups stall the other policies, and the report says so") {
    for (auto policy : without_waste) {
      auto seen = constant({96, 100, policy}, 5, 3);
      CHECK(seen.steps.empty());
      REQUIRE(seen.report.failure);
      CHECK(*seen.report.failure
            == error{errc::stalled,
                     "step 1 cannot end: it needs 96 gradients, 95 of 100 replicas are live, all "
                     "of them wait for a token, and no token is left"});
      CHECK(seen.report.open == open_step{1, 95, 96, 0});
      CHECK(seen.report.lost.empty());
    }
  }

  TEST_CASE("no replica at all stalls every policy that needs their tokens") {
    for (auto policy : without_waste) {
      auto seen = constant({2, 3, policy}, 3, 3);
      REQUIRE(seen.report.failure);
      CHECK(seen.report.failure->code == errc::stalled);
    }
    CHECK(constant({2, 3}, 3, 3).report.failure);
  }

  TEST_CASE("tensorflow goes on with more dead replicas than backups, at a price") {
    for (uint32_t dead : {5U, 10U})
      CHECK(constant({96, 100}, dead, 40).mean_seconds(4) == doctest::Approx(2.0).epsilon(0.03));
    auto seen = constant({96, 100}, 90, 24);
    CHECK(seen.mean_seconds(4) == doctest::Approx(10.0).epsilon(0.03));
    CHECK_FALSE(seen.report.failure);
  }

  TEST_CASE("tensorflow drops the share of the backups, whatever the computing times") {
    for (auto [replicas, needed] : {std::pair{100U, 96U}, {54U, 50U}, {16U, 14U}}) {
      CAPTURE(replicas);
      const uint64_t steps = 200;
      auto seen = exponential({needed, replicas}, steps);
      REQUIRE(seen.steps.size() == steps);
      CHECK(seen.accepted_count() == steps * needed);
      auto expected = static_cast<double>(steps) * (replicas - needed);
      CHECK(static_cast<double>(seen.stale_count())
            == doctest::Approx(expected).epsilon(2.0 * replicas / expected));
    }
  }

  TEST_CASE("where all replicas are needed, latest_token and cancel take the same steps") {
    auto latest = exponential({8, 8, sync_policy::latest_token}, 30);
    auto cancel = exponential({8, 8, sync_policy::cancel}, 30);
    CHECK(print(latest.steps) == print(cancel.steps));
  }

  TEST_CASE("backups make steps shorter under every policy") {
    for (auto policy : all_policies) {
      auto without = exponential({16, 16, policy}, 60).mean_seconds(4);
      auto with = exponential({12, 16, policy}, 60).mean_seconds(4);
      CHECK(with < without);
    }
  }

  TEST_CASE("under latest_token and cancel a replica gives one gradient to a step") {
    for (auto policy : without_waste) {
      auto seen = exponential({5, 8, policy}, 60);
      for (const auto& step : seen.steps) {
        auto replicas = replicas_of(step.accepted);
        std::ranges::sort(replicas);
        CHECK(std::ranges::adjacent_find(replicas) == replicas.end());
        CHECK(replicas.size() == 5);
      }
    }
  }

  TEST_CASE("the token ledger of docs/sync-replicas.md, with a replica that never comes") {
    small_job job{{.replicas_to_aggregate = 2, .total_num_replicas = 3}};
    auto seen = job.run_idle({.steps = 4, .dead_replicas = {2}, .pace = one_second});
    CHECK(seen.seconds() == std::vector<double>{1, 2, 2, 1});
    CHECK(seen.steps[1].stale.size() == 2);
    REQUIRE(seen.steps[2].accepted.size() == 2);
    CHECK(seen.steps[2].accepted[0].replica == seen.steps[2].accepted[1].replica);
  }
}

} // namespace step_pattern_test
