// SPDX-License-Identifier: Apache-2.0
// Goal: what a run is told of its optimizer becomes its plan. Method: options and the rules, rates
// and factors that should come of them.
#include "tests/doctest.hpp"
#include "tools/run/learning_rate.hpp"
#include "tools/train/plan.hpp"

namespace train_plan_test {

using namespace troupe;

TEST_SUITE("tools/train/plan") {
  TEST_CASE("an optimizer has the rate that suits it, unless it is told another") {
    train_options options;
    for (const auto name : choice_names<update_rule>()) {
      options.optimizer = name;
      auto plan = plan_of(options, 10);
      REQUIRE(plan);
      CHECK(name_of(plan->rule) == name);
      auto rate = std::visit([](const auto& rule) { return rule.learning_rate; }, plan->rule);
      CHECK(rate == default_learning_rate(name));
    }
    options.optimizer = "momentum";
    options.learning_rate = 0.25;
    options.optimizer_settings = {{"nesterov", 1}, {"clip_norm", 3}};
    auto plan = plan_of(options, 10).value();
    CHECK(std::get<rules::momentum>(plan.rule).learning_rate == 0.25);
    CHECK(std::get<rules::momentum>(plan.rule).nesterov);
    CHECK(plan.clip.norm_max == 3);
  }

  TEST_CASE("the rate rises, falls to 0 behind the last step, or stays") {
    train_options options;
    CHECK(plan_of(options, 10)->schedule.factor(6) == 0.5);
    options.learning_rate_decay = decay_kind::cosine;
    CHECK(plan_of(options, 10)->schedule.factor(6) == doctest::Approx(0.5));
    CHECK(plan_of(options, 10)->schedule.factor(11) == doctest::Approx(0));
    options.warm_up = 4;
    CHECK(plan_of(options, 10)->schedule.factor(3) == 0.5);
    CHECK(plan_of(options, 10)->schedule.factor(8) == doctest::Approx(0.5));
    options.learning_rate_decay = decay_kind::none;
    CHECK(plan_of(options, 10)->schedule.factor(10) == 1);
  }

  TEST_CASE("the rate of a step is that of its update") {
    train_options options;
    options.learning_rate = 0.5;
    auto plan = plan_of(options, 10);
    REQUIRE(plan);
    CHECK(learning_rate_at(*plan, 1) == 0.5);
    CHECK(learning_rate_at(*plan, 6) == 0.25);
  }

  TEST_CASE("settings that an optimizer has not are refused") {
    train_options options;
    options.optimizer_settings = {{"nesterov", 1}};
    auto plan = plan_of(options, 10);
    REQUIRE_FALSE(plan);
    CHECK(plan.error().code == errc::not_found);
  }
}

} // namespace train_plan_test
