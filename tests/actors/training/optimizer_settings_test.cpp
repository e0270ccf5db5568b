// SPDX-License-Identifier: Apache-2.0
// Goal: a plan arrives at the owners as it was set. Method: there and back in a message, with every
// setting at a value of its own, and names that do not exist.
#include "actors/training/optimizer_settings.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

namespace optimizer_settings_test {

using namespace troupe;

namespace {

optimizer_settings there_and_back(const update_plan& plan) {
  auto message = make_use_optimizer(to_settings(plan));
  auto back = to_plan(read_optimizer(message.reader()));
  REQUIRE(back);
  return to_settings(*back);
}

/// Gives every setting a number that no other has, and that its range allows.
struct distinct_numbers {
  double next = 1;

  template <class T>
  void operator()(std::string_view, T& member, setting_range range) {
    auto value = next++ / 64;
    if (range == setting_range::non_positive) value = -value;
    if (range == setting_range::count || range == setting_range::positive_count) value *= 64;
    if constexpr (std::is_same_v<T, bool>)
      member = true;
    else if constexpr (std::is_arithmetic_v<T>)
      member = static_cast<T>(value);
  }
};

template <class Choice>
Choice set_to_distinct_numbers(std::string_view name) {
  auto choice = choice_of_name<Choice>("choice", name).value();
  distinct_numbers numbers;
  visit_settings(choice, std::ref(numbers));
  return choice;
}

void refuses(const optimizer_settings& settings, errc code, const std::string& line) {
  auto plan = to_plan(settings);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == code);
  CHECK(plan.error().message == line);
}

} // namespace

TEST_SUITE("actors/training/optimizer_settings") {
  TEST_CASE("every optimizer comes back as it went") {
    for (auto name : choice_names<update_rule>()) {
      CAPTURE(name);
      update_plan plan{set_to_distinct_numbers<update_rule>(name)};
      auto settings = to_settings(plan);
      CHECK(settings.name == name);
      CHECK(there_and_back(plan) == settings);
      for (size_t i = 1; i < settings.settings.size(); ++i)
        CHECK(settings.settings[i].first != settings.settings[i - 1].first);
    }
  }

  TEST_CASE("numbers arrive where they belong") {
    auto back = to_plan(to_settings({rules::momentum{
      .learning_rate = 0.3, .decay = 0.8, .nesterov = true, .weight_decay = 0.004}}));
    REQUIRE(back);
    auto rule = std::get<rules::momentum>(back->rule);
    CHECK(rule.learning_rate == 0.3);
    CHECK(rule.decay == 0.8);
    CHECK(rule.nesterov);
    CHECK(rule.weight_decay == 0.004);
  }

  TEST_CASE("the step of adam is not sent: the owner counts it") {
    auto back = to_plan(to_settings({rules::adam{.beta1 = 0.8, .step = 17}}));
    REQUIRE(back);
    CHECK(std::get<rules::adam>(back->rule).beta1 == 0.8);
    CHECK(std::get<rules::adam>(back->rule).step == 1);
  }

  TEST_CASE("every schedule comes back as it went") {
    for (auto name : choice_names<schedule_shape>()) {
      CAPTURE(name);
      if (name == schedules::piecewise::name) continue;
      update_plan plan;
      plan.schedule = {set_to_distinct_numbers<schedule_shape>(name), 10, 0.25};
      CHECK(there_and_back(plan) == to_settings(plan));
    }
    update_plan pieces;
    pieces.schedule.shape = schedules::piecewise{{10, 20}, {1, 0.5, 0.25}};
    CHECK(there_and_back(pieces) == to_settings(pieces));
    CHECK(to_settings(pieces).schedule.settings.size() == 7);
    CHECK(to_plan({"sgd", {}})->schedule.factor(1000) == 1);
  }

  TEST_CASE("clips, sparse updates and averages come back as they went") {
    for (auto clip : {gradient_clip{.value_max = 0.5}, gradient_clip{.norm_max = 2}}) {
      update_plan plan{.clip = clip, .sparse_exact = true};
      plan.average = moving_average{"mean", 0.75, true};
      auto back = to_plan(to_settings(plan));
      REQUIRE(back);
      CHECK(back->clip.value_max == clip.value_max);
      CHECK(back->clip.norm_max == clip.norm_max);
      CHECK(back->sparse_exact);
      REQUIRE(back->average);
      CHECK(back->average->name == "mean");
      CHECK(back->average->decay == 0.75);
      CHECK(back->average->num_updates);
      CHECK(there_and_back(plan) == to_settings(plan));
    }
    CHECK_FALSE(to_plan(to_settings({}))->average);
  }

  TEST_CASE("a schedule of a number of updates that is none is refused") {
    for (double updates : {-1.0, 0.0, 1.5, std::nan(""), std::numeric_limits<double>::infinity()}) {
      auto plan = to_plan({"sgd", {}, {"polynomial", {{"updates", updates}}}});
      REQUIRE_FALSE(plan);
      CHECK(plan.error().code == errc::invalid_argument);
      CAPTURE(plan.error().message);
      CHECK(plan.error().message.find("schedule polynomial: updates is ") == 0);
    }
  }

  TEST_CASE("pieces that do not fit their boundaries are refused") {
    refuses({"sgd", {}, {"piecewise", {{"boundary", 5}, {"factor", 1}}}}, errc::invalid_argument,
            "schedule piecewise has 1 factors: it must have one more than its 1 boundaries");
    refuses({"sgd",
             {},
             {"piecewise",
              {{"boundary", 5}, {"boundary", 5}, {"factor", 1}, {"factor", 1}, {"factor", 1}}}},
            errc::invalid_argument, "schedule piecewise: boundaries must ascend");
  }

  TEST_CASE("settings that are not mentioned keep their defaults") {
    auto plan = to_plan({"adam", {{"beta1", 0.5}}});
    REQUIRE(plan);
    CHECK(std::get<rules::adam>(plan->rule).beta1 == 0.5);
    CHECK(std::get<rules::adam>(plan->rule).beta2 == rules::adam{}.beta2);
    CHECK(std::get<rules::adam>(plan->rule).learning_rate == rules::adam{}.learning_rate);
  }

  TEST_CASE("a name that there is not is refused, with those there are") {
    constexpr auto rest
      = "'; there are sgd, momentum, lion, adagrad, rmsprop, centered_rmsprop, adadelta, "
        "adam, adamw, amsgrad, adamax, nadam, ftrl, lars, lamb; register one of your own in every "
        "process";
    for (std::string name : {"adamv", "", "SGD"})
      refuses({name, {}}, errc::not_found, "no optimizer '" + name + rest);
    refuses({"sgd", {}, {"linear", {}}}, errc::not_found,
            "no schedule 'linear'; there are constant, piecewise, exponential, polynomial, cosine");
  }

  TEST_CASE("a setting that there is not is refused, with those there are") {
    refuses({"sgd", {{"momentum", 0.9}}}, errc::not_found,
            "optimizer sgd has no setting 'momentum'; it has learning_rate, weight_decay, "
            "clip_value, clip_norm, sparse_exact");
    refuses({"adam", {{"step", 3}}}, errc::not_found,
            "optimizer adam has no setting 'step'; it has learning_rate, beta1, beta2, epsilon, "
            "clip_value, clip_norm, sparse_exact");
    refuses({"lion", {{"epsilon", 1e-8}}}, errc::not_found,
            "optimizer lion has no setting 'epsilon'; it has learning_rate, beta1, beta2, "
            "decoupled_weight_decay, clip_value, clip_norm, sparse_exact");
    refuses({"sgd", {}, {}, {"mean", {{"momentum", 1}}}}, errc::not_found,
            "average mean has no setting 'momentum'; it has decay, num_updates");
  }

  TEST_CASE("a setting out of its range is refused, by name") {
    for (const auto& [optimizer, setting, value] : {std::tuple{"sgd", "learning_rate", -1.0},
                                                    {"momentum", "momentum", 1.5},
                                                    {"momentum", "nesterov", 0.5},
                                                    {"adam", "beta2", 1.0},
                                                    {"amsgrad", "decoupled_weight_decay", -1.0},
                                                    {"lion", "beta1", 1.0},
                                                    {"lars", "clip_norm", -1.0},
                                                    {"sgd", "learning_rate", std::nan("")}}) {
      auto plan = to_plan({optimizer, {{setting, value}}});
      REQUIRE_FALSE(plan);
      CHECK(plan.error().code == errc::invalid_argument);
      CAPTURE(plan.error().message);
      CHECK(plan.error().message.find(setting) != std::string::npos);
    }
    refuses({"sgd", {{"clip_norm", 1}, {"clip_value", 1}}}, errc::invalid_argument,
            "clip_value and clip_norm exclude each other: set one of them to 0");
  }

  TEST_CASE("the settings of an optimizer have names") {
    auto names = setting_names("adamw");
    REQUIRE(names);
    CHECK(*names
          == std::vector<std::string_view>{"learning_rate", "beta1", "beta2", "epsilon",
                                           "decoupled_weight_decay", "clip_value", "clip_norm",
                                           "sparse_exact"});
    CHECK(setting_names("magic").error().code == errc::not_found);
  }
}

} // namespace optimizer_settings_test
