// SPDX-License-Identifier: Apache-2.0
// Goal: what is learnt in virtual time is what the protocol makes of the gradients: dropped ones
// are missed, stale ones harm, local steps are averaged. Method: logistic regression with a truth
// that is known, held against plain loops where a loop can say it.
#include "messages/errors/failure.hpp"
#include "simulation/distributions/distribution.hpp"
#include "simulation/logistic_task.hpp"
#include "simulation/scenario.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <numeric>

namespace learning_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

learning_options learning_of(const logistic_options& data, double rate = 0.5) {
  return {.task = std::make_shared<const learning_task>(logistic_task(data)),
          .plan = {.rule = rules::sgd{.learning_rate = rate}},
          .evaluate_every = 10};
}

computing_time times(const char* expression) {
  return distribution::parse(expression).value().times(1);
}

scenario_report learnt(const sync_options& sync, const logistic_options& data, uint64_t steps,
                       const char* compute = "lognormal(1, 0.1)", double rate = 0.5) {
  auto report = simulate({.sync = sync,
                          .steps = steps,
                          .compute = times(compute),
                          .seed = 1,
                          .learning = learning_of(data, rate)});
  REQUIRE_FALSE(report.job.failure);
  return report;
}

double loss_of_truth(const logistic_options& options) {
  logistic_data data{options};
  std::vector<uint32_t> all(options.replicas);
  std::iota(all.begin(), all.end(), 0U);
  return data.loss(data.truth(), all);
}

std::vector<double> numbers(const tensor& from) {
  auto values = from.values<double>();
  return {values.begin(), values.end()};
}

/// Steps of all replicas, by loops: what their gradients' mean, or their average, comes to.
std::vector<double> by_loops(const logistic_options& options, uint32_t steps, uint32_t local_steps,
                             double rate) {
  logistic_data data{options};
  std::vector<double> weights(data.truth().size());
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<double> sum(weights.size());
    for (uint32_t replica = 0; replica < options.replicas; ++replica) {
      auto local = weights;
      for (uint32_t i = 0; i < local_steps; ++i) {
        auto batch = data.differentiate(local, replica, uint64_t{step} * local_steps + i);
        auto gradient = numbers(std::get<tensor>(batch.gradients[0]));
        for (size_t at = 0; at < local.size(); ++at)
          local[at] -= rate * gradient[at];
      }
      for (size_t at = 0; at < local.size(); ++at)
        sum[at] += local[at] / options.replicas;
    }
    weights = sum;
  }
  return weights;
}

double loss_by_loops(const logistic_options& options, uint32_t steps, uint32_t local_steps,
                     double rate) {
  auto weights = by_loops(options, steps, local_steps, rate);
  std::vector<uint32_t> all(options.replicas);
  std::iota(all.begin(), all.end(), 0U);
  return logistic_data{options}.loss(weights, all);
}

constexpr auto latest_token = sync_policy::latest_token;

} // namespace

TEST_SUITE("simulation/learning") {
  TEST_CASE("weights come close to the truth, and the loss to its") {
    logistic_options data{.seed = 3, .replicas = 8};
    auto report = learnt({8, 8, latest_token}, data, 400);
    REQUIRE(report.losses.size() == 41);
    CHECK(report.losses.front().step == 0);
    CHECK(report.losses.front().seconds == 0);
    CHECK(report.losses.front().loss == doctest::Approx(std::log(2)));
    CHECK(report.losses.back().step == 400);
    CHECK(report.losses.back().seconds
          == doctest::Approx(std::chrono::duration<double>(report.virtual_time).count()));
    auto truth = loss_of_truth(data);
    CHECK(report.losses.back().loss < truth + 0.01);
    CHECK(report.losses.back().loss > truth - 0.01);
    CHECK(std::isnan(report.losses.back().slow_loss));
  }

  TEST_CASE("a simulated job learns what plain loops learn") {
    logistic_options data{.seed = 5, .replicas = 4, .batch = 8};
    auto report = learnt({4, 4, latest_token}, data, 30);
    CHECK(report.losses.back().loss
          == doctest::Approx(loss_by_loops(data, 30, 1, 0.5)).epsilon(1e-12));
  }

  TEST_CASE("local steps are made by every replica, and averaged") {
    logistic_options data{.seed = 5, .replicas = 4, .batch = 8};
    auto report = simulate({.sync = {4, 4, latest_token},
                            .steps = 20,
                            .compute = times("exponential(1)"),
                            .local_sgd = {.local_steps = 5},
                            .learning = learning_of(data)});
    CHECK(report.losses.back().loss
          == doctest::Approx(loss_by_loops(data, 20, 5, 0.5)).epsilon(1e-12));
  }

  TEST_CASE("local steps by another rule than sgd are refused") {
    auto learning = learning_of({.replicas = 2});
    learning.plan.rule = rules::adam{};
    CHECK_THROWS_WITH_AS(
      static_cast<void>(simulate(
        {.sync = {2, 2, latest_token}, .local_sgd = {.local_steps = 5}, .learning = learning})),
      "replicas make local steps by sgd alone; choose the optimizer sgd, or 1 "
      "local step",
      failure);
  }

  TEST_CASE("a gradient of the wrong shape among local steps is refused, and changes nothing") {
    scenario what{.sync = {3, 4, latest_token},
                  .steps = 20,
                  .compute = times("slow({3}, 1.1)"),
                  .local_sgd = {.local_steps = 3},
                  .learning = learning_of({.replicas = 4})};
    what.faults.faults = {{.kind = fault_kind::corrupt,
                           .at = 4500ms,
                           .who = {"replica 2"},
                           .how = corruption::wrong_shape}};
    auto report = simulate(what);
    CHECK_FALSE(report.job.failure);
    REQUIRE(report.job.lost.size() == 1);
    CHECK(report.job.lost[0].replica == 2);
    CHECK(report.job.lost[0].reason.code == errc::invalid_argument);
    CHECK(report.losses.back().loss < 0.65);
  }

  TEST_CASE("a gradient that is no number has the type of its variable") {
    scenario what{.sync = {3, 4, latest_token},
                  .steps = 20,
                  .compute = times("slow({3}, 1.1)"),
                  .learning = learning_of({.replicas = 4})};
    what.faults.faults = {{.kind = fault_kind::corrupt, .at = 4500ms, .who = {"replica 2"}}};
    auto report = simulate(what);
    CHECK(report.job.lost.empty());
    CHECK(std::isnan(report.losses.back().loss));
    what.sync.require_finite = true;
    report = simulate(what);
    REQUIRE(report.job.lost.size() == 1);
    CHECK(report.job.lost[0].reason.message.find("finite") != std::string::npos);
    CHECK(report.losses.back().loss < 0.65);
  }

  TEST_CASE("looking at the loss changes no step") {
    logistic_options data{.replicas = 4};
    auto often = learnt({3, 4, latest_token}, data, 50);
    auto plain = simulate({.sync = {3, 4, latest_token},
                           .steps = 50,
                           .compute = times("lognormal(1, 0.1)"),
                           .seed = 1});
    CHECK(often.step_times == plain.step_times);
    CHECK(often.stale == plain.stale);
  }

  TEST_CASE("a feature that only slow replicas' data have is not learnt without them") {
    logistic_options data{.seed = 3, .replicas = 10, .own_data = true};
    const auto* compute = "lognormal(1, 0.1) slow={2,5}*4";
    auto all = learnt({10, 10, latest_token}, data, 300, compute);
    auto fast = learnt({8, 10, latest_token}, data, 300, compute);
    auto late = learnt({8, 10, sync_policy::k_batch_async}, data, 300, compute);
    auto gap = [](const scenario_report& report) {
      return report.losses.back().slow_loss - report.losses.back().fast_loss;
    };
    CHECK(gap(fast) > gap(all) + 0.1);
    CHECK(gap(late) < gap(fast) - 0.05); // stale gradients of slow replicas count
    CHECK(fast.virtual_time < all.virtual_time / 2);
  }

  TEST_CASE("where data are alike, nothing is lost by leaving slow replicas out") {
    logistic_options data{.seed = 3, .replicas = 10};
    auto report = learnt({8, 10, latest_token}, data, 300, "lognormal(1, 0.1) slow={2,5}*4");
    CHECK(report.losses.back().loss < loss_of_truth(data) + 0.02);
  }

  TEST_CASE("stale gradients harm where steps are long") {
    logistic_options data{.seed = 3, .replicas = 20};
    const double rate = 2;
    auto fresh = learnt({1, 1, latest_token}, {.seed = 3}, 2000, "lognormal(1, 0.1)", rate);
    auto stale = learnt({1, 20, sync_policy::k_batch_async}, data, 2000, "lognormal(1, 0.1)", rate);
    CHECK(stale.losses.back().loss > fresh.losses.back().loss + 0.05);
  }

  TEST_CASE("a replica is slow if its times are above the others', on average over many draws") {
    CHECK(slow_replicas(times("lognormal(1, 0.1) slow={2,5}*2"), 8) == std::vector<uint32_t>{2, 5});
    CHECK(slow_replicas(times("lognormal(1, 0.1) slow={2,5}*1.1"), 8).empty());
    CHECK(slow_replicas(constant_time(1s), 1).empty());
  }

  TEST_CASE("the time to a loss is read between points") {
    std::vector<loss_point> curve(3);
    curve[0] = {.seconds = 0, .loss = 4};
    curve[1] = {.seconds = 10, .loss = 2};
    curve[2] = {.seconds = 20, .loss = 3};
    CHECK(seconds_to(5, curve) == 0);
    CHECK(seconds_to(3, curve) == 5);
    CHECK(seconds_to(2, curve) == 10);
    CHECK(std::isnan(seconds_to(1, curve)));
    CHECK(std::isnan(seconds_to(std::nan(""), curve)));
  }

  TEST_CASE("local steps take sparse gradients row by row") {
    auto value = zeros({3, 2}, dtype::f32);
    indexed_slices rows{zeros({3}, dtype::i64), zeros({3, 2}), {3, 2}};
    auto numbers = rows.indices.mutable_values<int64_t>();
    numbers[0] = numbers[1] = 2; // a row that occurs twice adds up
    for (auto& element : rows.values.mutable_values<float>())
      element = 1;
    auto after = descended({value}, {rows}, 0.5);
    auto found = after[0].values<float>();
    CHECK(std::vector<float>(found.begin(), found.end())
          == std::vector<float>{-0.5, -0.5, 0, 0, -1, -1});
    CHECK(value.values<float>()[4] == 0);
  }

  TEST_CASE("the gradient of the loss is its slope") {
    logistic_options options{.seed = 9, .replicas = 2, .features = 3, .batch = 4, .own_data = true};
    logistic_data data{options};
    std::vector<double> weights{0.3, -0.2, 0.5, 1, -1};
    auto batch = data.differentiate(weights, 1, 7);
    auto gradient = numbers(std::get<tensor>(batch.gradients[0]));
    CHECK(gradient[3] == 0); // what is replica 0's own
    for (size_t i = 0; i < weights.size(); ++i) {
      auto above = weights;
      above[i] += 1e-5;
      auto slope = (data.differentiate(above, 1, 7).loss - batch.loss) / 1e-5;
      CHECK(slope == doctest::Approx(gradient[i]).epsilon(1e-3));
    }
  }
}

} // namespace learning_test
