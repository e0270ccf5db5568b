// SPDX-License-Identifier: Apache-2.0
// Goal: an optimizer arrives at the owners as it was set. Method: there and back, with every
// setting at a value of its own, and names that do not exist.
#include "actors/optimizer_settings.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <limits>

using namespace troupe;

namespace {

template <class Rule>
Rule there_and_back(const Rule& rule) {
  auto message = make_use_optimizer(to_settings(rule));
  auto back = to_rule(read_optimizer(message.reader()));
  REQUIRE(back);
  REQUIRE(std::holds_alternative<Rule>(*back));
  return std::get<Rule>(*back);
}

void refuses(const optimizer_settings& settings, errc code, const std::string& line) {
  auto rule = to_rule(settings);
  REQUIRE_FALSE(rule);
  CHECK(rule.error().code == code);
  CHECK(rule.error().message == line);
}

} // namespace

TEST_SUITE("actors/optimizer_settings") {
  TEST_CASE("sgd comes back as it went") {
    auto back = there_and_back(rules::sgd{.learning_rate = 0.3, .weight_decay = 0.004});
    CHECK(back.learning_rate == 0.3);
    CHECK(back.weight_decay == 0.004);
  }

  TEST_CASE("momentum comes back as it went") {
    auto back = there_and_back(
      rules::momentum{.learning_rate = 0.3, .decay = 0.8, .nesterov = true, .weight_decay = 0.004});
    CHECK(back.learning_rate == 0.3);
    CHECK(back.decay == 0.8);
    CHECK(back.nesterov);
    CHECK(back.weight_decay == 0.004);
    CHECK_FALSE(there_and_back(rules::momentum{}).nesterov);
  }

  TEST_CASE("adam comes back as it went, but for the step, which the owner counts") {
    auto back = there_and_back(
      rules::adam{.learning_rate = 0.3, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-5, .step = 17});
    CHECK(back.learning_rate == 0.3);
    CHECK(back.beta1 == 0.8);
    CHECK(back.beta2 == 0.99);
    CHECK(back.epsilon == 1e-5);
    CHECK(back.step == rules::adam{}.step);
  }

  TEST_CASE("a schedule comes back as it went, with every optimizer") {
    for (const update_rule& rule :
         {update_rule{rules::sgd{}}, update_rule{rules::momentum{}}, update_rule{rules::adam{}}}) {
      auto settings = to_settings(rule, {.linear_decay_updates = 4000});
      auto back = to_schedule(read_optimizer(make_use_optimizer(settings).reader()));
      REQUIRE(back);
      CHECK(back->linear_decay_updates == 4000);
      REQUIRE(to_rule(settings));
      CHECK(to_rule(settings)->index() == rule.index());
    }
    auto constant = to_schedule(to_settings(rules::sgd{}));
    REQUIRE(constant);
    CHECK(constant->linear_decay_updates == 0);
  }

  TEST_CASE("a schedule of a number of updates that is none is refused") {
    for (double updates : {-1.0, std::nan(""), std::numeric_limits<double>::infinity(), 0x1p53}) {
      auto schedule = to_schedule({"sgd", {{"linear_decay_updates", updates}}});
      REQUIRE_FALSE(schedule);
      CHECK(schedule.error().code == errc::invalid_argument);
      CAPTURE(schedule.error().message);
      CHECK(schedule.error().message.find("linear_decay_updates is ") == 0);
    }
  }

  TEST_CASE("settings that are not mentioned keep their defaults") {
    auto rule = to_rule({"adam", {{"beta1", 0.5}}});
    REQUIRE(rule);
    CHECK(std::get<rules::adam>(*rule).beta1 == 0.5);
    CHECK(std::get<rules::adam>(*rule).beta2 == rules::adam{}.beta2);
    CHECK(std::get<rules::adam>(*rule).learning_rate == rules::adam{}.learning_rate);
  }

  TEST_CASE("an optimizer that there is not is refused, with those there are") {
    refuses({"adamw", {}}, errc::not_found,
            "no optimizer 'adamw'; there are sgd, momentum and adam");
    refuses({"", {}}, errc::not_found, "no optimizer ''; there are sgd, momentum and adam");
    refuses({"SGD", {}}, errc::not_found, "no optimizer 'SGD'; there are sgd, momentum and adam");
  }

  TEST_CASE("a setting that there is not is refused, with those there are") {
    refuses({"sgd", {{"momentum", 0.9}}}, errc::not_found,
            "optimizer sgd has no setting 'momentum'; it has learning_rate, weight_decay");
    refuses({"momentum", {{"learning_rate", 0.1}, {"decay", 0.9}}}, errc::not_found,
            "optimizer momentum has no setting 'decay'; it has learning_rate, momentum, nesterov, "
            "weight_decay");
    refuses({"adam", {{"step", 3}}}, errc::not_found,
            "optimizer adam has no setting 'step'; it has learning_rate, beta1, beta2, epsilon");
  }

  TEST_CASE("a setting out of its range is refused, by name") {
    for (const auto& [optimizer, setting, value] : {std::tuple{"sgd", "learning_rate", -1.0},
                                                    {"momentum", "momentum", 1.5},
                                                    {"adam", "beta2", 1.0},
                                                    {"sgd", "learning_rate", std::nan("")}}) {
      auto rule = to_rule({optimizer, {{setting, value}}});
      REQUIRE_FALSE(rule);
      CHECK(rule.error().code == errc::invalid_argument);
      CAPTURE(rule.error().message);
      CHECK(rule.error().message.find(setting) != std::string::npos);
    }
  }
}
