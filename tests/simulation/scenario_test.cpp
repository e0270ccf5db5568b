// SPDX-License-Identifier: Apache-2.0
// Goal: the three policies cost what theory says. Method: the actors of a real job in virtual time,
// held against step patterns and closed forms that are independent of our code.
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "simulation/scenario.hpp"
#include "tests/doctest.hpp"
#include "tests/simulation/harmonic.hpp"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <vector>

namespace scenario_test {

using namespace std::chrono_literals;
using troupe::scenario;
using troupe::simulate;
using troupe::sync_policy;
using troupe::test::harmonic;

namespace {

constexpr auto all_policies
  = {sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel};

std::vector<double> first_steps(const troupe::scenario_report& report, size_t count) {
  std::vector<double> result;
  for (size_t i = 0; i < std::min(count, report.step_times.size()); ++i)
    result.push_back(std::chrono::duration<double>(report.step_times[i]).count());
  return result;
}

scenario constant(uint32_t needed, uint32_t replicas, sync_policy policy,
                  std::vector<uint32_t> dead = {}) {
  return {.sync = {needed, replicas, policy}, .steps = 60, .dead_replicas = std::move(dead)};
}

std::vector<uint32_t> first_replicas(uint32_t count) {
  std::vector<uint32_t> result;
  for (uint32_t i = 0; i < count; ++i)
    result.push_back(i);
  return result;
}

// All that it says but for the hash, which the scenario may leave out.
std::string figures_of(const troupe::scenario_report& report) {
  auto steps = troupe::mapped<int64_t>(report.step_times, [](auto time) { return time.count(); });
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", steps, report.accepted, report.stale,
                     report.cancelled, report.staleness_counts, report.needed,
                     report.wasted.count(), report.virtual_time.count(), report.live_time.count(),
                     report.events, report.job.step);
}

} // namespace

TEST_SUITE("simulation/scenario") {
  TEST_CASE("a report without a hash says what one with a hash says") {
    // Whole seconds, so that many gradients come at one moment, some of them too late in it.
    auto whole = [](uint32_t replica, uint64_t iteration) {
      return std::chrono::seconds{(replica * 7 + iteration * iteration * 5) % 4};
    };
    auto drawn = troupe::exponential_time(1s, 3);
    for (auto policy : all_policies)
      for (const troupe::computing_time& compute : {troupe::computing_time{whole}, drawn})
        for (uint32_t needed : {1U, 5U, 9U}) {
          auto what = constant(needed, 10, policy, {4});
          what.compute = compute;
          auto with_hash = simulate(what);
          what.hashes = false;
          auto without = simulate(what);
          CHECK(figures_of(without) == figures_of(with_hash));
          CHECK(without.log_hash == 0);
          CHECK(with_hash.log_hash != 0);
        }
  }

  TEST_CASE("a job that stalls says so without a hash, too") {
    auto what = constant(5, 6, sync_policy::cancel, {1, 2});
    what.hashes = false;
    auto report = simulate(what);
    REQUIRE(report.stalled);
    CHECK(report.stalled->live == 4);
    auto endless = constant(1, 2, sync_policy::cancel);
    endless.hashes = false;
    endless.compute = troupe::constant_time(troupe::job_time::max());
    CHECK_THROWS_AS(static_cast<void>(simulate(endless)), troupe::failure);
  }

  TEST_CASE("tensorflow wastes the second round, and only that") {
    for (uint32_t needed : {50U, 46U}) {
      auto report = simulate(constant(needed, 50, sync_policy::tensorflow));
      CHECK(first_steps(report, 6) == std::vector<double>{1, 2, 1, 1, 1, 1});
    }
  }

  TEST_CASE("latest_token and cancel waste no round") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel})
      CHECK(first_steps(simulate(constant(46, 50, policy)), 6)
            == std::vector<double>{1, 1, 1, 1, 1, 1});
  }

  TEST_CASE("without initial tokens tensorflow wastes no round") {
    auto tokenless = constant(50, 50, sync_policy::tensorflow);
    tokenless.sync.initial_tokens = 0;
    CHECK(first_steps(simulate(tokenless), 4) == std::vector<double>{1, 1, 1, 1});
  }

  TEST_CASE("one dead replica of 50 costs tensorflow half its speed and the others nothing") {
    auto report = simulate(constant(49, 50, sync_policy::tensorflow, {7}));
    CHECK(first_steps(report, 7) == std::vector<double>{1, 2, 2, 1, 2, 1, 2});
    CHECK(report.mean_step_seconds(2) == doctest::Approx(1.5).epsilon(0.01));
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel})
      CHECK(simulate(constant(49, 50, policy, {7})).mean_step_seconds() == 1);
  }

  TEST_CASE("four backups spread the cost of a dead replica over five steps") {
    auto report = simulate(constant(46, 50, sync_policy::tensorflow, {7}));
    CHECK(first_steps(report, 7) == std::vector<double>{1, 2, 1, 1, 1, 1, 2});
    CHECK(report.mean_step_seconds(5) == doctest::Approx(1.2).epsilon(0.01));
  }

  TEST_CASE("with d of b backups dead tensorflow's mean step is 1 + 1 / (floor(b / d) + 1)") {
    for (uint32_t backups : {1U, 2U, 4U}) {
      for (uint32_t dead : {1U, 2U, 4U}) {
        if (dead > backups) continue;
        auto long_run = constant(100 - backups, 100, sync_policy::tensorflow, first_replicas(dead));
        long_run.steps = 242;
        auto expected = 1 + 1.0 / (std::floor(backups / dead) + 1);
        CHECK(simulate(long_run).mean_step_seconds(2) == doctest::Approx(expected).epsilon(0.02));
      }
    }
  }

  TEST_CASE("time in which nothing happens takes no events") {
    auto events_of = [](troupe::job_time step) {
      auto what = constant(4, 4, sync_policy::latest_token);
      what.steps = 20;
      what.compute = troupe::constant_time(step);
      what.engine = troupe::simulation_engine::actors;
      return simulate(what).events;
    };
    CHECK(events_of(100'000'000s)
          < events_of(1s) + 20 * 4 * 30); // looks at 0.5 s, 1 s, 2 s, 4 s...
  }

  TEST_CASE("a job that lasts longer than clocks can count is refused") {
    auto what = constant(1, 1, sync_policy::latest_token);
    what.steps = 20;
    what.compute = troupe::constant_time(1'000'000'000s);
    CHECK_THROWS_WITH_AS(
      static_cast<void>(simulate(what)),
      "step 5 ended after 146 virtual years, and clocks count no more than twice that; make fewer "
      "steps, or let them take less time",
      troupe::failure);
  }

  TEST_CASE("work in vain is counted as far as clocks count") {
    for (bool hashes : {false, true}) {
      auto what = constant(1, 3, sync_policy::cancel);
      what.hashes = hashes;
      what.steps = 4;
      what.compute = troupe::constant_time(1'000'000'000s);
      auto report = simulate(what);
      CHECK(report.virtual_time == 4 * 1'000'000'000s);
      CHECK(report.wasted == 8 * 1'000'000'000s);
      what = constant(1, 12, sync_policy::cancel);
      what.hashes = hashes;
      what.steps = 1;
      what.compute = troupe::constant_time(1'000'000'000s);
      CHECK(simulate(what).wasted == troupe::job_time::max());
    }
  }

  TEST_CASE("local steps that last longer than clocks can count are refused by every engine") {
    for (auto engine : {troupe::simulation_engine::direct, troupe::simulation_engine::actors}) {
      auto what = constant(2, 2, sync_policy::latest_token);
      what.local_sgd.local_steps = 10;
      what.compute = troupe::constant_time(1'000'000'000s);
      what.engine = engine;
      CHECK_THROWS_WITH_AS(static_cast<void>(simulate(what)),
                           doctest::Contains("step 1 ended after 146 virtual years"),
                           troupe::failure);
    }
  }

  TEST_CASE("messages that take longer than clocks can count are refused") {
    auto refuse = [](const troupe::network_options& network) {
      auto what = constant(2, 2, sync_policy::latest_token);
      what.network = network;
      CHECK_THROWS_WITH_AS(static_cast<void>(simulate(what)),
                           doctest::Contains("ended after 146 virtual years"), troupe::failure);
    };
    auto longest = [](auto...) { return troupe::job_time{1'000'000'000s}; };
    refuse({.latency = longest});
    refuse({.service = longest});
    refuse({.bytes_per_second = 1, .gradient_bytes = 1'000'000'000});
  }

  TEST_CASE("as many dead as backups cost latest_token and cancel nothing, one more stalls them") {
    for (auto policy : {sync_policy::latest_token, sync_policy::cancel}) {
      CHECK(simulate(constant(96, 100, policy, first_replicas(4))).mean_step_seconds() == 1);
      auto stalled = simulate(constant(96, 100, policy, first_replicas(5))).job;
      REQUIRE(stalled.failure);
      CHECK(stalled.failure->code == troupe::errc::stalled);
      CHECK(stalled.failure->message.find("needs 96 gradients, 95 of 100 replicas are live")
            != std::string::npos);
    }
  }

  TEST_CASE("more dead than backups slow tensorflow down but do not stall it") {
    CHECK(
      simulate(constant(96, 100, sync_policy::tensorflow, first_replicas(5))).mean_step_seconds(2)
      == doctest::Approx(2));
    CHECK(
      simulate(constant(96, 100, sync_policy::tensorflow, first_replicas(90))).mean_step_seconds(2)
      == doctest::Approx(10).epsilon(0.05));
  }

  TEST_CASE("cancelling matches the order statistics of exponential times: (H_n - H_(n-N)) mean") {
    scenario exponential{.sync = {14, 16, sync_policy::cancel},
                         .steps = 20000,
                         .compute = troupe::exponential_time(1s, 11)};
    auto expected = harmonic(16) - harmonic(2); // 1.8807290
    CHECK(expected == doctest::Approx(1.8807290));
    // One standard error of the mean of 20,000 steps is 0.0045.
    CHECK(simulate(exponential).mean_step_seconds(1000)
          == doctest::Approx(expected).epsilon(0.0096));
  }

  TEST_CASE("latest_token and tensorflow match the published means for exponential times") {
    scenario exponential{.sync = {14, 16, sync_policy::latest_token},
                         .steps = 20000,
                         .compute = troupe::exponential_time(1s, 5)};
    CHECK(simulate(exponential).mean_step_seconds(1000)
          == doctest::Approx(2.1153617).epsilon(0.0096));
    exponential.sync.policy = sync_policy::tensorflow;
    auto tensorflow = simulate(exponential);
    CHECK(tensorflow.mean_step_seconds(1000) == doctest::Approx(1.8982).epsilon(0.0096));
    CHECK(tensorflow.drop_fraction() == doctest::Approx(2.0 / 16).epsilon(0.001));
  }

  TEST_CASE("latest_token and cancel make the same steps when every gradient is needed") {
    scenario all{.sync = {8, 8, sync_policy::latest_token},
                 .steps = 200,
                 .compute = troupe::exponential_time(1s, 3)};
    auto latest = simulate(all);
    all.sync.policy = sync_policy::cancel;
    CHECK(latest.step_times == simulate(all).step_times);
  }

  TEST_CASE("the same seed gives the same run, and the interleaving does not change the pattern") {
    scenario first{.sync = {3, 4, sync_policy::tensorflow},
                   .steps = 300,
                   .compute = troupe::exponential_time(1s, 3),
                   .seed = 9};
    CHECK(simulate(first).step_times == simulate(first).step_times);
    for (uint64_t seed = 0; seed < 8; ++seed) {
      auto other = constant(49, 50, sync_policy::tensorflow, {7});
      other.seed = seed;
      CHECK(first_steps(simulate(other), 5) == std::vector<double>{1, 2, 2, 1, 2});
    }
  }

  TEST_CASE("replayed times begin again when they run out") {
    auto times = troupe::replayed_times({{1s, 3s}, {}});
    CHECK(times(0, 0) == 1s);
    CHECK(times(0, 3) == 3s);
    CHECK(times(1, 5) == 2s);
  }

  TEST_CASE("refuses counts that no run could satisfy") {
    for (auto policy : all_policies)
      CHECK_THROWS_AS(static_cast<void>(simulate(constant(0, 4, policy))), troupe::failure);
    CHECK_THROWS_AS(static_cast<void>(simulate(constant(5, 4, sync_policy::latest_token))),
                    troupe::failure);
    CHECK_THROWS_WITH_AS(
      static_cast<void>(simulate(constant(3, 4, sync_policy::latest_token, {0, 4}))),
      "dead_replicas names replica 4, but there are 4 replicas", troupe::failure);
  }
}

} // namespace scenario_test
