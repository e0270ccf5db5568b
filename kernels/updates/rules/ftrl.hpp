// SPDX-License-Identifier: Apache-2.0
// The rule for sparse models: follow the regularised leader.
#pragma once

#include "kernels/tensor/host_device.hpp"
#include "kernels/updates/rules/setting.hpp"

#include <array>
#include <cmath>
#include <string_view>

namespace troupe::rules {

/// FTRL: follows the leader of all steps so far, and leaves elements at exactly 0 that do not earn
/// their `l1`.
///   shrunk       = gradient + 2 * l2_shrinkage * value
///   sigma        = (accumulator + gradient^2)^-power - accumulator^-power
///   linear      += learning_rate * shrunk - sigma * value
///   accumulator += gradient^2
///   value        = |linear| <= learning_rate * l1 ? 0
///                : (sign(linear) * learning_rate * l1 - linear)
///                  / (accumulator^-power + 2 * learning_rate * l2 + beta)
/// `linear` begins at 0: with gradients small beside the initial accumulator, the first update all
/// but forgets an initial value. That suits linear models.
/// Source: McMahan et al., "Ad click prediction: a view from the trenches", 2013, algorithm 1, with
/// the powers, the shrinkage and the defaults of Keras' Ftrl, and `linear` multiplied by the
/// learning rate as TensorFlow's `multiply_linear_by_lr` has it. Values are the same while the rate
/// is constant; in the paper's form they would shrink with a rate that falls.
struct ftrl {
  double learning_rate = 0.001;
  double learning_rate_power = -0.5; ///< How fast rates fall with the accumulator; 0: not at all.
  double initial_accumulator_value = 0.1;
  double l1 = 0;           ///< Strength of l1 regularisation.
  double l2 = 0;           ///< Strength of l2 regularisation, which holds values near 0.
  double l2_shrinkage = 0; ///< The same for the step alone, not for its size.
  double beta = 0;         ///< Lowers all rates: "beta" in the paper.

  static constexpr std::string_view name = "ftrl";
  static constexpr std::array<std::string_view, 2> slot_names{"accumulator", "linear"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("learning_rate_power", rule.learning_rate_power, setting_range::non_positive);
    visit("initial_accumulator_value", rule.initial_accumulator_value, setting_range::non_negative);
    visit("l1", rule.l1, setting_range::non_negative);
    visit("l2", rule.l2, setting_range::non_negative);
    visit("l2_shrinkage", rule.l2_shrinkage, setting_range::non_negative);
    visit("beta", rule.beta, setting_range::non_negative);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const ftrl& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        power(static_cast<T>(-settings.learning_rate_power)),
        l1(static_cast<T>(settings.learning_rate * settings.l1)),
        curvature(static_cast<T>(2 * settings.learning_rate * settings.l2 + settings.beta)),
        twice_l2_shrinkage(static_cast<T>(2 * settings.l2_shrinkage)) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      T result{};
      choose_form([&](const auto& form) { result = form(value, gradient, slots); });
      return result;
    }

    /// Calls `use` with this rule for a whole loop: with a root, or with any other power.
    template <class Use>
    TROUPE_HOST_DEVICE void choose_form(const Use& use) const {
      if (power == T{0.5})
        use([to = *this](T value, T gradient, auto& slots) {
          return to.step(value, gradient, slots, [](T x) { return std::sqrt(x); });
        });
      else
        use([to = *this](T value, T gradient, auto& slots) {
          return to.step(value, gradient, slots, [to](T x) { return std::pow(x, to.power); });
        });
    }

    template <class Power>
    TROUPE_HOST_DEVICE T step(T value, T gradient, std::array<T, slot_names.size()>& slots,
                              Power to_power) const {
      T accumulator = slots[0] + gradient * gradient;
      T strength = to_power(accumulator);
      T sigma = strength - to_power(slots[0]);
      T shrunk = gradient + twice_l2_shrinkage * value;
      T linear = slots[1] + (learning_rate * shrunk - sigma * value);
      slots[0] = accumulator;
      slots[1] = linear;
      T excess = (linear < 0 ? -l1 : l1) - linear;
      T steepness = strength + curvature; // 0 if all gradients so far are too small to be squared
      return std::abs(linear) <= l1 || steepness == 0 ? T{0} : excess / steepness;
    }

    T learning_rate;
    T power;
    T l1;        ///< Times the learning rate.
    T curvature; ///< Regularisation's part, added to that of the gradients.
    T twice_l2_shrinkage;
  };
};

} // namespace troupe::rules
