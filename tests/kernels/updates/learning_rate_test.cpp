// SPDX-License-Identifier: Apache-2.0
// Goal: learning rates take the courses that Keras' schedules give them. Method: factors beside the
// formulas, at beginnings, ends and beyond, and numbers worked out by hand.
#include "kernels/updates/learning_rate.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace learning_rate_test {

using namespace troupe;

namespace {

/// Factors of the first updates.
std::vector<double> first_factors(const learning_rate_schedule& schedule, uint64_t count) {
  std::vector<double> factors;
  for (uint64_t update = 1; update <= count; ++update)
    factors.push_back(schedule.factor(update));
  return factors;
}

std::string refusal(const learning_rate_schedule& schedule) {
  auto result = validate(schedule);
  return result ? "accepted" : result.error().message;
}

} // namespace

TEST_SUITE("kernels/updates/learning_rate") {
  TEST_CASE("a constant rate stays") {
    CHECK(first_factors({}, 3) == std::vector<double>{1, 1, 1});
    CHECK(linear_decay(0).factor(1'000'000) == 1);
  }

  TEST_CASE("a linear decay is whole at the first update and 0 after the last") {
    CHECK(first_factors(linear_decay(4), 6) == std::vector<double>{1, 0.75, 0.5, 0.25, 0, 0});
    for (uint64_t updates : {3, 7, 1000})
      for (uint64_t n = 1; n <= updates; ++n)
        CHECK(linear_decay(updates).factor(n)
              == static_cast<double>(updates - (n - 1)) / static_cast<double>(updates));
  }

  TEST_CASE("pieces change after their boundaries") {
    learning_rate_schedule schedule{schedules::piecewise{{1, 3}, {1, 0.5, 0.25}}};
    CHECK(first_factors(schedule, 6) == std::vector<double>{1, 1, 0.5, 0.5, 0.25, 0.25});
    CHECK(first_factors({schedules::piecewise{{}, {0.5}}}, 2) == std::vector<double>{0.5, 0.5});
  }

  TEST_CASE("an exponential decay halves in every period, at once or bit by bit") {
    learning_rate_schedule smooth{schedules::exponential{.updates = 2, .decay_rate = 0.25}};
    CHECK(first_factors(smooth, 5) == std::vector<double>{1, 0.5, 0.25, 0.125, 0.0625});
    learning_rate_schedule stairs{
      schedules::exponential{.updates = 2, .decay_rate = 0.25, .staircase = true}};
    CHECK(first_factors(stairs, 5) == std::vector<double>{1, 1, 0.25, 0.25, 0.0625});
  }

  TEST_CASE("a polynomial ends where it should, or begins again") {
    learning_rate_schedule square{
      schedules::polynomial{.updates = 4, .end_factor = 0.5, .power = 2}};
    CHECK(first_factors(square, 6) == std::vector<double>{1, 0.78125, 0.625, 0.53125, 0.5, 0.5});
    // Keras stretches the period to the next multiple: 1 - 5 / 8 after 5 of 4 updates.
    learning_rate_schedule cycles{schedules::polynomial{.updates = 4, .cycle = true}};
    CHECK(first_factors(cycles, 10)
          == std::vector<double>{1, 0.75, 0.5, 0.25, 0, 0.375, 0.25, 0.125, 0, 0.25});
  }

  TEST_CASE("a cosine goes from 1 to its end in half a wave") {
    learning_rate_schedule schedule{schedules::cosine{.updates = 6, .alpha = 0.2}};
    for (uint64_t done = 0; done <= 6; ++done)
      CHECK(schedule.factor(done + 1)
            == doctest::Approx(0.2 + 0.8 * 0.5 * (1 + std::cos(std::numbers::pi * done / 6.0))));
    CHECK(schedule.factor(4) == doctest::Approx(0.6));
    CHECK(schedule.factor(100) == doctest::Approx(0.2));
  }

  TEST_CASE("a warm-up rises in a straight line, and then the course begins") {
    auto schedule = linear_decay(4);
    schedule.warm_up_updates = 2;
    CHECK(first_factors(schedule, 6) == std::vector<double>{0, 0.5, 1, 0.75, 0.5, 0.25});
    schedule.warm_up_from = 0.5;
    CHECK(first_factors(schedule, 3) == std::vector<double>{0.5, 0.75, 1});
  }

  TEST_CASE("a schedule changes the learning rate of any rule, and nothing else") {
    for (auto name : choice_names<update_rule>()) {
      auto rule = choice_of_name<update_rule>("optimizer", name).value();
      auto changed = linear_decay(4).at(rule, 2);
      CHECK(changed.index() == rule.index());
      std::vector<double> before, after;
      auto collect = [](std::vector<double>& into) {
        return [&](std::string_view, auto member, setting_range) {
          into.push_back(static_cast<double>(member));
        };
      };
      visit_settings(rule, collect(before));
      visit_settings(changed, collect(after));
      CHECK(after[0] == 0.75 * before[0]);
      CHECK(std::vector(after.begin() + 1, after.end())
            == std::vector(before.begin() + 1, before.end()));
    }
  }

  TEST_CASE("settings that cannot work are refused by name") {
    CHECK(refusal({}) == "accepted");
    CHECK(refusal({schedules::piecewise{{1, 2}, {1, 1, 1}}}) == "accepted");
    CHECK(refusal({schedules::piecewise{}}).find("schedule piecewise has 0 factors") == 0);
    CHECK(refusal({schedules::piecewise{{2, 1}, {1, 1, 1}}}).find("boundaries must ascend") > 0);
    CHECK(refusal({schedules::piecewise{{}, {-1}}}).find("factor is -1") == 0);
    CHECK(refusal({schedules::polynomial{.updates = 0}}).find("updates is 0") == 0);
    CHECK(refusal({schedules::exponential{.decay_rate = NAN}}).find("decay_rate is ") == 0);
    CHECK(refusal({.warm_up_from = 2}).find("warm_up_from is 2") == 0);
  }
}

} // namespace learning_rate_test
