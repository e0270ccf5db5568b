// SPDX-License-Identifier: Apache-2.0
// What an optimizer does to one element: the only part in which optimizers differ.
#pragma once

#include "messages/errc.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <variant>

/// The rules; the optimizers that a user names are in `strategies/`.
namespace troupe::rules {

// A rule is a struct of its settings with
//   slot_count     the arrays of the variable's size that the optimizer keeps beside it,
//   for_elements   a template: what `settings` mean for elements of type T, worked out once, and
//                  operator()(value, gradient, slots), which returns the new value of one element
//                  and leaves the new slots in `slots`.
// To add an optimizer, write its rule and name it in `update_rule`; the passes over memory, dense
// and sparse, take it from there. Settings are double and rounded once to the variable's type.

/// Gradient descent: value -= learning_rate * gradient.
struct sgd {
  double learning_rate = 0.01;
  double weight_decay = 0; ///< This times the value is added to the gradient.

  static constexpr size_t slot_count = 0;

  template <class T>
  struct for_elements {
    explicit for_elements(const sgd& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        weight_decay(static_cast<T>(settings.weight_decay)) {}

    T operator()(T value, T gradient, std::array<T, slot_count>&) const {
      gradient = weight_decay != 0 ? gradient + weight_decay * value : gradient;
      return value - learning_rate * gradient;
    }

    T learning_rate;
    T weight_decay;
  };
};

/// Momentum: velocity = momentum * velocity + gradient; value -= learning_rate * velocity.
/// Nesterov's form looks ahead: value -= learning_rate * (gradient + momentum * velocity).
/// Slots: velocity, from 0.
/// Source: Sutskever et al., "On the importance of initialization and momentum in deep learning",
/// 2013, in the form of TensorFlow's MomentumOptimizer (the velocity is free of the learning rate).
struct momentum {
  double learning_rate = 0.01;
  double decay = 0.9; ///< What is left of the velocity after a step: "momentum" in the paper.
  bool nesterov = false;
  double weight_decay = 0; ///< This times the value is added to the gradient.

  static constexpr size_t slot_count = 1;

  template <class T>
  struct for_elements {
    explicit for_elements(const momentum& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        decay(static_cast<T>(settings.decay)), weight_decay(static_cast<T>(settings.weight_decay)),
        nesterov(settings.nesterov) {}

    T operator()(T value, T gradient, std::array<T, slot_count>& slots) const {
      gradient = weight_decay != 0 ? gradient + weight_decay * value : gradient;
      T velocity = decay * slots[0] + gradient;
      slots[0] = velocity;
      return value - learning_rate * (nesterov ? gradient + decay * velocity : velocity);
    }

    T learning_rate;
    T decay;
    T weight_decay;
    bool nesterov;
  };
};

/// Adam: a mean of gradients over the root of a mean of their squares.
///   mean   += (1 - beta1) * (gradient - mean)
///   square += (1 - beta2) * (gradient^2 - square)
///   value  -= rate * mean / (sqrt(square) + epsilon),
///   rate    = learning_rate * sqrt(1 - beta2^step) / (1 - beta1^step)
/// Slots: mean and square, both from 0.
/// Source: Kingma and Ba, "Adam", 2015, algorithm 1 in the more efficient order of section 2. The
/// epsilon is the paper's "epsilon hat" (added to the uncorrected root), as in TensorFlow.
struct adam {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  uint64_t step = 1; ///< Number of this update, from 1: corrects the bias of slots that began at 0.

  static constexpr size_t slot_count = 2;

  template <class T>
  struct for_elements {
    explicit for_elements(const adam& settings)
      : mean_weight(static_cast<T>(1 - settings.beta1)),
        square_weight(static_cast<T>(1 - settings.beta2)),
        epsilon(static_cast<T>(settings.epsilon)) {
      auto step = static_cast<double>(settings.step);
      auto mean_bias = 1 - std::pow(settings.beta1, step);
      auto square_bias = 1 - std::pow(settings.beta2, step);
      rate = static_cast<T>(settings.learning_rate * std::sqrt(square_bias) / mean_bias);
    }

    T operator()(T value, T gradient, std::array<T, slot_count>& slots) const {
      T mean = slots[0] + mean_weight * (gradient - slots[0]);
      T square = slots[1] + square_weight * (gradient * gradient - slots[1]);
      slots[0] = mean;
      slots[1] = square;
      return value - rate * mean / (std::sqrt(square) + epsilon);
    }

    T mean_weight;
    T square_weight;
    T epsilon;
    T rate;
  };
};

} // namespace troupe::rules

namespace troupe {

/// Any optimizer's rule.
using update_rule = std::variant<rules::sgd, rules::momentum, rules::adam>;

/// Arrays of the variable's size that the rule keeps beside it.
[[nodiscard]] constexpr size_t slot_count(const update_rule& rule) {
  return std::visit([](const auto& settings) { return settings.slot_count; }, rule);
}

/// Refuses settings that would turn every variable into NaN or move it away from the minimum.
/// Errors: invalid_argument; the line names the setting and its range.
[[nodiscard]] expected<void> validate(const update_rule& rule);

} // namespace troupe
