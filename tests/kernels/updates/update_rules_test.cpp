// SPDX-License-Identifier: Apache-2.0
// Goal: rules compute what the optimizers' papers say, in the cases that a table of ordinary steps
// leaves out. Method: numbers by hand, and formulas in double.
#include "kernels/updates/update.hpp"
#include "kernels/updates/update_rules.hpp"
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace update_rules_test {

using namespace troupe;

namespace {

const cpu::context fast;

/// One f64 element after one update in place: {value, slots...}.
std::vector<double> one_step(const update_rule& rule, double value, double gradient,
                             std::vector<double> slots) {
  const elements sources[] = {std::span<const double>{&gradient, 1}};
  auto places = mapped(slots, [](auto& slot) { return in_place(std::span{&slot, 1}); });
  cpu::update<double>(fast, rule, {sources, 1, 1}, in_place(std::span{&value, 1}), places);
  slots.insert(slots.begin(), value);
  return slots;
}

} // namespace

TEST_SUITE("kernels/updates/update_rules") {
  TEST_CASE("gradient descent goes down the gradient") {
    auto state = one_step(rules::sgd{.learning_rate = 0.5}, 3, 2, {});
    CHECK(state[0] == 2);
    state = one_step(rules::sgd{.learning_rate = 0.5, .weight_decay = 0.25}, 4, 2, {});
    CHECK(state[0] == 2.5);
  }

  TEST_CASE("momentum keeps a velocity, and Nesterov looks one step ahead") {
    auto state = one_step(rules::momentum{.learning_rate = 0.5, .decay = 0.5}, 3, 2, {8});
    CHECK(state[1] == 6);
    CHECK(state[0] == 0);
    state
      = one_step(rules::momentum{.learning_rate = 0.5, .decay = 0.5, .nesterov = true}, 3, 2, {8});
    CHECK(state[1] == 6);
    CHECK(state[0] == 0.5);
  }

  TEST_CASE("Adam follows algorithm 1 of its paper") {
    // m and v with bias correction as in the algorithm; epsilon-hat is epsilon * sqrt(1 - beta2^t).
    double m = 0, v = 0, theta = 0.7;
    std::vector<double> state = {0.7, 0, 0};
    for (uint64_t t = 1; t <= 50; ++t) {
      double gradient = std::sin(static_cast<double>(t)) + 0.2;
      m = 0.9 * m + 0.1 * gradient;
      v = 0.999 * v + 0.001 * gradient * gradient;
      double m_hat = m / (1 - std::pow(0.9, t)), v_hat = v / (1 - std::pow(0.999, t));
      double epsilon = 1e-3 / std::sqrt(1 - std::pow(0.999, t));
      theta -= 0.01 * m_hat / (std::sqrt(v_hat) + epsilon);
      state = one_step(rules::adam{.learning_rate = 0.01, .epsilon = 1e-3, .step = t}, state[0],
                       gradient, {state[1], state[2]});
      CHECK(state[0] == doctest::Approx(theta).epsilon(1e-12));
      CHECK(state[1] == doctest::Approx(m).epsilon(1e-12));
      CHECK(state[2] == doctest::Approx(v).epsilon(1e-12));
    }
  }

  TEST_CASE("AMSGrad is Adam with a divisor that never shrinks") {
    rules::amsgrad rule{.learning_rate = 0.5, .beta1 = 0, .beta2 = 0, .epsilon = 0};
    CHECK(one_step(rule, 3, 2, {0, 0, 16}) == std::vector<double>{2.75, 2, 4, 16});
    CHECK(one_step(rule, 3, 8, {0, 0, 16}) == std::vector<double>{2.5, 8, 64, 64});
    auto grown = one_step(rules::amsgrad{.step = 7}, 3, 8, {1, 2, 1});
    auto adam = one_step(rules::adam{.step = 7}, 3, 8, {1, 2});
    CHECK(grown == std::vector<double>{adam[0], adam[1], adam[2], adam[2]});
  }

  TEST_CASE("AMSGrad's decay shrinks the variable beside the gradient, as AdamW's does") {
    rules::amsgrad rule{.decoupled_weight_decay = 0.5, .step = 7};
    rules::adamw adamw{.decoupled_weight_decay = 0.5, .step = 7};
    CHECK(one_step(rule, 3, 8, {1, 2, 1})[0] == one_step(adamw, 3, 8, {1, 2})[0]);
  }

  TEST_CASE("Lion moves an element by its learning rate, or not at all") {
    rules::lion rule{.learning_rate = 0.25, .beta1 = 0.5, .beta2 = 0.75};
    CHECK(one_step(rule, 3, 2, {-8}) == std::vector<double>{3.25, -5.5});
    CHECK(one_step(rule, 3, 2, {8}) == std::vector<double>{2.75, 6.5});
    CHECK(one_step(rule, 3, -2, {2}) == std::vector<double>{3, 1}); // a direction of 0
    CHECK(one_step(rule, 3, 0, {0}) == std::vector<double>{3, 0});
  }

  TEST_CASE("Lion's decay shrinks the variable beside its step") {
    rules::lion rule{.learning_rate = 0.5, .decoupled_weight_decay = 0.5};
    CHECK(one_step(rule, 4, 2, {0})[0] == 2.5);
    CHECK(one_step(rule, 4, 0, {0})[0] == 3);
  }

  TEST_CASE("Lion with a beta1 of 0 follows the sign of a gradient that is far below its mean") {
    rules::lion rule{.learning_rate = 0.25, .beta1 = 0};
    CHECK(one_step(rule, 3, 1e-20, {-1})[0] == 2.75);
    CHECK(one_step(rule, 3, -1e-20, {1})[0] == 3.25);
  }

  TEST_CASE("Nadam's product is that of all momenta so far, worked out from the step alone") {
    double product = 1;
    for (uint64_t t = 1; t <= 2000; ++t) {
      rules::nadam rule{.step = t};
      product *= rule.momentum(t);
      CHECK(1 - rule.product() == 1 - product);
    }
    rules::nadam late{.beta1 = 0.999, .step = uint64_t{1} << 50};
    CHECK(1 - late.product() == 1);
  }

  TEST_CASE("Nadam's momentum grows as Keras 2's or Keras 3's, by its decay") {
    CHECK(rules::nadam{}.momentum(100) == doctest::Approx(0.9 * (1 - 0.5 * std::pow(0.96, 0.4))));
    CHECK(rules::nadam{.momentum_decay = 1}.momentum(100)
          == doctest::Approx(0.9 * (1 - 0.5 * std::pow(0.96, 100))));
    CHECK(validate(rules::nadam{.momentum_decay = -1}).error().message.find("momentum_decay") == 0);
  }

  TEST_CASE("FTRL leaves elements at 0 that do not earn their l1") {
    rules::ftrl rule{.learning_rate = 0.5, .initial_accumulator_value = 1, .l1 = 10};
    auto state = one_step(rule, 0, 3, {1, 0});
    CHECK(state[0] == 0);
    CHECK(state[1] == 10);
    CHECK(state[2] == 1.5);
    state = one_step(rule, 0, 9, {state[1], state[2]});
    CHECK(state[0] < 0);
  }

  TEST_CASE("FTRL without regularisation is Adagrad, also while its learning rate falls") {
    // If it has not forgotten the initial value of 2: linear = -2 * sqrt(accumulator).
    std::vector<double> ftrl = {2, 4, -4}, adagrad = {2, 4};
    for (double rate : {1.0, 0.5, 0.25, 0.0}) {
      ftrl = one_step(rules::ftrl{.learning_rate = rate}, ftrl[0], 3, {ftrl[1], ftrl[2]});
      adagrad = one_step(rules::adagrad{.learning_rate = rate, .epsilon = 0}, adagrad[0], 3,
                         {adagrad[1]});
      CHECK(ftrl[0] == doctest::Approx(adagrad[0]).epsilon(1e-14));
      CHECK(ftrl[1] == adagrad[1]);
    }
  }

  TEST_CASE("FTRL leaves an element at 0 while its gradients are too small to be squared") {
    rules::ftrl rule{.initial_accumulator_value = 0, .l2_shrinkage = 0.1};
    CHECK(one_step(rule, 1, 0, {0, 0})[0] == 0);
    CHECK(one_step(rule, 1, 1e-200, {0, 0})[0] == 0);
  }

  TEST_CASE("a deviation that rounding makes negative is 0") {
    rules::centered_rmsprop rule{.learning_rate = 1, .epsilon = 1e-4};
    CHECK(one_step(rule, 3, 1, {0.99, 0, 1})[0] == doctest::Approx(3 - 100));
    CHECK(std::isnan(one_step(rule, 3, NAN, {0.99, 0, 1})[0]));
  }

  TEST_CASE("layer-wise rules go at their plain rate where a norm is 0") {
    // LARS with a variable of 0: step = 0.5 * 2.
    CHECK(one_step(rules::lars{.learning_rate = 0.5}, 0, 2, {0})[0] == -1);
    // LAMB at the first step: m and v corrected are 2 and 4.
    auto state = one_step(rules::lamb{.learning_rate = 0.5, .epsilon = 0}, 0, 2, {0, 0});
    CHECK(state[0] == doctest::Approx(-0.5));
    CHECK(one_step(rules::lamb{}, 3, 0, {0, 0})[0] == 3);
  }

  TEST_CASE("LAMB's step is as long as its variable, LARS' a part of it") {
    CHECK(one_step(rules::lamb{.learning_rate = 0.25}, -4, 2, {0, 0})[0] == doctest::Approx(-5));
    rules::lars lars{.learning_rate = 0.25, .trust_coefficient = 0.5, .weight_decay = 0};
    CHECK(one_step(lars, -4, 2, {0})[0] == doctest::Approx(-4.5));
  }

  TEST_CASE("a gradient of NaN shows in the variable, whatever the rule") {
    for (auto name : choice_names<update_rule>()) {
      CAPTURE(name);
      auto rule = choice_of_name<update_rule>("optimizer", name).value();
      auto state = one_step(rule, 1, NAN, std::vector<double>(slot_count(rule), 1));
      CHECK(std::isnan(state[0]));
    }
  }

  TEST_CASE("slots have names, and begin at 0 but for accumulators") {
    for (auto name : choice_names<update_rule>()) {
      CAPTURE(name);
      auto rule = choice_of_name<update_rule>("optimizer", name).value();
      for (size_t slot = 0; slot < slot_count(rule); ++slot)
        CHECK(initial_slot_value(rule, slot)
              == (slot_names(rule)[slot] == "accumulator" ? 0.1 : 0));
    }
    CHECK(initial_slot_value(rules::adagrad{.initial_accumulator_value = 2}, 0) == 2);
  }

  TEST_CASE("the number of an update reaches the rules that count") {
    CHECK(std::get<rules::nadam>(at_update(rules::nadam{}, 7)).step == 7);
    CHECK(std::get<rules::sgd>(at_update(rules::sgd{}, 7)).learning_rate == 0.01);
  }

  TEST_CASE("settings that cannot work are refused by name") {
    auto refusal = [](const update_rule& rule) {
      auto result = validate(rule);
      return result ? std::string{"accepted"} : result.error().message;
    };
    for (auto name : choice_names<update_rule>())
      CHECK(refusal(choice_of_name<update_rule>("optimizer", name).value()) == "accepted");
    CHECK(refusal(rules::sgd{.learning_rate = -1}).find("learning_rate is -1") == 0);
    CHECK(refusal(rules::sgd{.learning_rate = NAN}).find("learning_rate") == 0);
    CHECK(refusal(rules::sgd{.weight_decay = -1}).find("weight_decay") == 0);
    CHECK(refusal(rules::momentum{.decay = 1}).find("momentum") == 0);
    CHECK(refusal(rules::adam{.beta1 = -0.1}).find("beta1") == 0);
    CHECK(refusal(rules::adam{.beta2 = 1}).find("beta2") == 0);
    CHECK(refusal(rules::adam{.epsilon = -1}).find("epsilon") == 0);
    CHECK(refusal(rules::adadelta{.epsilon = 0}).find("epsilon") == 0);
    CHECK(refusal(rules::ftrl{.learning_rate_power = 0.5}).find("learning_rate_power") == 0);
    CHECK(refusal(rules::lamb{.epsilon = INFINITY}).find("epsilon") == 0);
  }
}

} // namespace update_rules_test
