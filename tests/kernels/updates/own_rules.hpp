// SPDX-License-Identifier: Apache-2.0
// Rules as a program brings them: momentum once more, and one that throws.
#pragma once

#include "kernels/updates/custom_rule.hpp"

#include <cmath>
#include <stdexcept>

namespace troupe::test {

/// The update of `rules::momentum`, by another name.
struct own_momentum {
  double learning_rate = 0.01;
  double decay = 0.9;

  static constexpr std::string_view name = "own_momentum";
  static constexpr std::array<std::string_view, 1> slot_names{"velocity"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("decay", rule.decay, setting_range::decay);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const own_momentum& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        decay(static_cast<T>(settings.decay)) {}

    T operator()(T value, T gradient, std::array<T, 1>& slots) const {
      slots[0] = decay * slots[0] + gradient;
      return value - learning_rate * slots[0];
    }

    T learning_rate;
    T decay;
  };
};

/// A slot that begins at a setting, and a step that only descends on even updates; throws at a NaN.
struct own_careful_descent {
  double learning_rate = 0.5;
  double initial = 3;
  bool only_even = false;
  uint64_t step = 1;

  static constexpr std::string_view name = "own_careful_descent";
  static constexpr std::array<std::string_view, 1> slot_names{"seen"};

  [[nodiscard]] double initial_slot_value(size_t) const { return initial; }

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("initial", rule.initial, setting_range::non_negative);
    visit("only_even", rule.only_even, setting_range::flag);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const own_careful_descent& settings)
      : rate(settings.only_even && settings.step % 2 == 1
               ? T{0}
               : static_cast<T>(settings.learning_rate)) {}

    T operator()(T value, T gradient, std::array<T, 1>& slots) const {
      if (std::isnan(gradient)) throw std::domain_error("the gradient is not a number");
      slots[0] += 1;
      return value - rate * gradient;
    }

    T rate;
  };
};

/// Makes both known, once in a program.
inline void register_own_rules() {
  static const bool are_registered
    = register_rule<own_momentum>() && register_rule<own_careful_descent>();
  static_cast<void>(are_registered);
}

} // namespace troupe::test
