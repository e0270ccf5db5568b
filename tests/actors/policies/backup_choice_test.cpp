// SPDX-License-Identifier: Apache-2.0
// Goal: a step waits for as many gradients as help most for their time. Method: gains and times by
// hand, the paper's formulas on gradients of known expectation and variance.
#include "actors/policies/backup_choice.hpp"
#include "kernels/tensor/random.hpp"
#include "tests/doctest.hpp"

#include <cmath>

namespace backup_choice_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using numbers = std::vector<double>;

/// A step of four replicas: their gradients came after these times.
step_record step_of(uint64_t step, const std::vector<job_time>& times) {
  step_record record{.step = step, .began = 100s * step};
  record.ended = record.began;
  for (uint32_t i = 0; i < times.size(); ++i) {
    record.accepted.push_back(
      {.replica = i, .local_step = step - 1, .arrived = record.began + times[i]});
    record.ended = std::max(record.ended, record.began + times[i]);
  }
  return record;
}

} // namespace

TEST_SUITE("actors/policies/backup_choice") {
  TEST_CASE("the best count has the largest gain for its time") {
    CHECK(best_count(numbers{1, 2, 3, 4}, numbers{1, 1, 1, 1}) == 4);
    CHECK(best_count(numbers{1, 2, 3, 4}, numbers{1, 1, 1, 9}) == 3);
    CHECK(best_count(numbers{1, 1.1, 1.15, 1.2}, numbers{1, 2, 3, 4}) == 1);
    CHECK(best_count(numbers{-5, -1, 1, 2}, numbers{1, 1, 1, 9}) == 3);
  }

  TEST_CASE("the largest of equal counts is best, and all if nothing helps") {
    CHECK(best_count(numbers{1, 2}, numbers{1, 2}) == 2);
    CHECK(best_count(numbers{-3, -2, -1}, numbers{1, 2, 3}) == 3);
    CHECK(best_count(numbers{0}, numbers{0}) == 1);
  }

  TEST_CASE("norms of gradients say how long their expectation is, and how far they spread") {
    // Gradients 3 and 5: their mean is 4, the squares of their norms are 9 and 25.
    auto spread = gradient_spread::of({.squared_mean = 16, .mean_squared = 17}, 2);
    CHECK(spread.variance == 2);
    CHECK(spread.squared_norm == 15);
    CHECK(gradient_spread::of({.squared_mean = 1, .mean_squared = 1}, 8).variance == 0);
    CHECK(gradient_spread::of({.squared_mean = 0.1, .mean_squared = 10}, 2).squared_norm == 0);
  }

  TEST_CASE("the estimates of both are right on average") {
    // In 50 dimensions: a gradient of squared norm 4 with a variance of 50 * 0.25.
    double squared_norm = 0;
    double variance = 0;
    constexpr int rounds = 400;
    random_stream draws{random_key{3, "gradients"}};
    for (int round = 0; round < rounds; ++round) {
      numbers mean(50);
      gradient_norms norms;
      for (int i = 0; i < 8; ++i)
        for (size_t at = 0; at < mean.size(); ++at) {
          auto element = (at == 0 ? 2 : 0) + 0.5 * draws.normal();
          mean[at] += element / 8;
          norms.mean_squared += element * element / 8;
        }
      for (auto element : mean)
        norms.squared_mean += element * element;
      auto spread = gradient_spread::of(norms, 8);
      squared_norm += spread.squared_norm / rounds;
      variance += spread.variance / rounds;
    }
    CHECK(squared_norm == doctest::Approx(4).epsilon(0.02));
    CHECK(variance == doctest::Approx(12.5).epsilon(0.02));
  }

  TEST_CASE("a gain grows with the gradients, up to that of the expectation itself") {
    gradient_spread spread{.squared_norm = 4, .variance = 8};
    CHECK(spread.gain(1, 1) == -2);
    CHECK(spread.gain(2, 1) == 0);
    CHECK(spread.gain(4, 1) == 1);
    CHECK(spread.gain(1'000'000'000, 1) == doctest::Approx(2));
    CHECK(spread.gain(4, 0.5) == 2.5);
  }

  TEST_CASE("before anything is known all are waited for") {
    backup_choice choice{{.gain = gain_model::power}};
    CHECK(choice.choose({0, 1, 2, 3}, 0s) == 4);
    CHECK(choice.choose({1, 3}, 0s) == 2);
  }

  TEST_CASE("a slow replica is not waited for, unless its gradient is worth it") {
    for (auto [power, best] : {std::pair{1.0, 3U}, std::pair{4.0, 4U}}) {
      backup_choice choice{{.gain = gain_model::power, .power = power}};
      choice.add(step_of(1, {1s, 1s, 1s, 2s}), {});
      CHECK(choice.choose({0, 1, 2, 3}, 102s) == best);
      CHECK(choice.choose({0, 1, 2}, 102s) == 3);
    }
  }

  TEST_CASE("noisy gradients are waited for, clear ones are not") {
    auto step = step_of(1, {1s, 2s, 3s, 4s});
    backup_choice clear{{.curvature = 1}};
    clear.add(step, {.squared_mean = 1, .mean_squared = 1});
    CHECK(clear.choose({0, 1, 2, 3}, 104s) == 1);
    backup_choice noisy{{.curvature = 1}};
    noisy.add(step, {.squared_mean = 1, .mean_squared = 2.5});
    CHECK(noisy.choose({0, 1, 2, 3}, 104s) == 4);
  }

  TEST_CASE("norms that are no numbers are not looked at") {
    backup_choice choice{{}};
    choice.add(step_of(1, {1s, 2s, 3s, 9s}), {.squared_mean = std::nan(""), .mean_squared = 1});
    CHECK(choice.choose({0, 1, 2, 3}, 109s) == 4);
  }

  TEST_CASE("curvature is what the options say, or what the losses do, where updates are plain") {
    auto fallen = [](double curvature, double learning_rate) {
      backup_choice choice{{.curvature = curvature, .window = 4}, learning_rate};
      // A parabola of curvature 2 with gradients that are all alike: at x the loss is x^2.
      double x = 1;
      for (uint64_t step = 1; step <= 8; ++step) {
        auto record = step_of(step, {1s, 1s});
        for (auto& one : record.accepted)
          one.loss = x * x;
        choice.add(record, {.squared_mean = 4 * x * x, .mean_squared = 4 * x * x});
        x -= 0.25 * 2 * x;
      }
      return choice.curvature();
    };
    CHECK(fallen(0, 0.25) == doctest::Approx(0.5));
    CHECK(fallen(0.7, 0.25) == 0.7);
    CHECK(fallen(0, 0) == 0.1);
    CHECK(backup_choice{{.curvature = 0}, 0.25}.curvature() == 0.1);
  }

  TEST_CASE("a choice goes on from another's estimates, as far as it remembers them") {
    dynamic_backups options{.curvature = 0, .window = 4, .memory = 6};
    backup_choice first{options, 0.25};
    CHECK(first.is_empty());
    for (uint64_t step = 1; step <= 8; ++step) {
      auto record = step_of(step, {1s, 2s, 3s, 4s});
      for (auto& one : record.accepted)
        one.loss = 1.0 / static_cast<double>(step);
      first.add(record, {.squared_mean = 1, .mean_squared = 1.5 + 0.1 * static_cast<double>(step)});
    }
    backup_choice second{options, 0.25};
    second.restore(first.estimates());
    CHECK_FALSE(second.is_empty());
    CHECK(second.curvature() == first.curvature());
    CHECK(second.choose({0, 1, 2, 3}, 900s) == first.choose({0, 1, 2, 3}, 900s));
    backup_choice forgetful{{.window = 1, .memory = 2}};
    forgetful.restore(first.estimates());
    CHECK(forgetful.estimates().arrivals.size() == 2);
    CHECK(forgetful.estimates().spreads.size() == 1);
    CHECK(forgetful.estimates().descent.size() == 2);
    CHECK(forgetful.estimates().arrivals.back() == first.estimates().arrivals.back());
  }

  TEST_CASE("losses that are not reported say nothing of the curvature") {
    backup_choice choice{{.curvature = 0, .window = 4}, 0.25};
    for (uint64_t step = 1; step <= 8; ++step) {
      auto record = step_of(step, {1s, 1s});
      for (auto& one : record.accepted)
        one.loss = std::nan("");
      choice.add(record, {.squared_mean = 1, .mean_squared = 1});
    }
    CHECK(choice.curvature() == 0.1);
  }
}

} // namespace backup_choice_test
