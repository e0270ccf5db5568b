// SPDX-License-Identifier: Apache-2.0
// Rules that give each element a rate of its own, from the squares of its gradients so far.
#pragma once

#include "kernels/tensor/host_device.hpp"
#include "kernels/updates/rules/setting.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace troupe::rules {

/// Adagrad: elements with large gradients get small rates, for ever.
///   accumulator += gradient^2
///   value       -= learning_rate * gradient / (sqrt(accumulator) + epsilon)
/// Source: Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and
/// stochastic optimization", 2011, in the form of TensorFlow 2's older Adagrad
/// (`tf.keras.optimizers.legacy`): epsilon beside the root. Keras 3 has the same defaults, but
/// epsilon under the root. PyTorch's is this one with an initial accumulator of 0 and epsilon
/// 1e-10.
struct adagrad {
  double learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;

  static constexpr std::string_view name = "adagrad";
  static constexpr std::array<std::string_view, 1> slot_names{"accumulator"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("initial_accumulator_value", rule.initial_accumulator_value, setting_range::non_negative);
    visit("epsilon", rule.epsilon, setting_range::non_negative);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const adagrad& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        epsilon(static_cast<T>(settings.epsilon)) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      T accumulator = slots[0] + gradient * gradient;
      slots[0] = accumulator;
      return value - learning_rate * gradient / (std::sqrt(accumulator) + epsilon);
    }

    T learning_rate;
    T epsilon;
  };
};

/// RMSProp: Adagrad that forgets, with momentum.
///   rms       += (1 - rho) * (gradient^2 - rms)
///   velocity   = momentum * velocity + learning_rate * gradient / sqrt(rms + epsilon)
///   value     -= velocity
/// Source: Tieleman and Hinton, "Lecture 6.5 - RMSProp", 2012, in the form of TensorFlow's
/// RMSPropOptimizer, but for its rms, which begins at 1: epsilon under the root, and the learning
/// rate in the velocity. PyTorch's has epsilon beside the root and the rate outside; with epsilon 0
/// and a constant rate both agree.
struct rmsprop {
  double learning_rate = 0.001;
  double rho = 0.9; ///< Share of the mean square that a step keeps: "decay" in TensorFlow 1.
  double momentum = 0;
  double epsilon = 1e-7;

  static constexpr std::string_view name = "rmsprop";
  static constexpr std::array<std::string_view, 2> slot_names{"rms", "momentum"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("rho", rule.rho, setting_range::decay);
    visit("momentum", rule.momentum, setting_range::decay);
    visit("epsilon", rule.epsilon, setting_range::non_negative);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const rmsprop& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        square_weight(static_cast<T>(1 - settings.rho)),
        momentum(static_cast<T>(settings.momentum)), epsilon(static_cast<T>(settings.epsilon)) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      T square = slots[0] + square_weight * (gradient * gradient - slots[0]);
      T velocity = momentum * slots[1] + learning_rate * gradient / std::sqrt(square + epsilon);
      slots[0] = square;
      slots[1] = velocity;
      return value - velocity;
    }

    T learning_rate;
    T square_weight;
    T momentum;
    T epsilon;
  };
};

/// Centred RMSProp divides by the deviation of the gradients in place of their size.
///   mg        += (1 - rho) * (gradient - mg)
///   velocity   = momentum * velocity + learning_rate * gradient / sqrt(rms - mg^2 + epsilon)
/// and the rest as `rmsprop`. Rounding can make rms - mg^2 a little negative where gradients hardly
/// change: it counts as 0, where the original gives NaN. An epsilon of 0 divides by 0 there.
/// Source: Graves, "Generating sequences with recurrent neural networks", 2013, equations 38-45, in
/// the form of TensorFlow's RMSPropOptimizer with `centered`.
struct centered_rmsprop {
  double learning_rate = 0.001;
  double rho = 0.9;
  double momentum = 0;
  double epsilon = 1e-7;

  static constexpr std::string_view name = "centered_rmsprop";
  static constexpr std::array<std::string_view, 3> slot_names{"rms", "momentum", "mg"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    rmsprop::visit_settings(rule, visit);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const centered_rmsprop& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        weight(static_cast<T>(1 - settings.rho)), momentum(static_cast<T>(settings.momentum)),
        epsilon(static_cast<T>(settings.epsilon)) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      T square = slots[0] + weight * (gradient * gradient - slots[0]);
      T mean = slots[2] + weight * (gradient - slots[2]);
      T variance = square - mean * mean;
      variance = variance < 0 ? T{0} : variance; // by rounding; NaN stays
      T velocity = momentum * slots[1] + learning_rate * gradient / std::sqrt(variance + epsilon);
      slots = {square, velocity, mean};
      return value - velocity;
    }

    T learning_rate;
    T weight;
    T momentum;
    T epsilon;
  };
};

/// Adadelta: the step has the units of the variable, from the squares of the steps so far.
///   accum_grad += (1 - rho) * (gradient^2 - accum_grad)
///   step        = gradient * sqrt(accum_var + epsilon) / sqrt(accum_grad + epsilon)
///   accum_var  += (1 - rho) * (step^2 - accum_var)
///   value      -= learning_rate * step
/// Source: Zeiler, "ADADELTA: an adaptive learning rate method", 2012, algorithm 1, with the
/// learning rate (1 in the paper) and the slots' names of Keras' Adadelta. PyTorch's is the same.
struct adadelta {
  double learning_rate = 0.001;
  double rho = 0.95;
  double epsilon = 1e-7;

  static constexpr std::string_view name = "adadelta";
  static constexpr std::array<std::string_view, 2> slot_names{"accum_grad", "accum_var"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("rho", rule.rho, setting_range::decay);
    visit("epsilon", rule.epsilon, setting_range::positive);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const adadelta& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        weight(static_cast<T>(1 - settings.rho)),
        epsilon(std::max(static_cast<T>(settings.epsilon), std::numeric_limits<T>::min())) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      T square = slots[0] + weight * (gradient * gradient - slots[0]);
      T step = gradient * (std::sqrt(slots[1] + epsilon) / std::sqrt(square + epsilon));
      slots[0] = square;
      slots[1] = slots[1] + weight * (step * step - slots[1]);
      return value - learning_rate * step;
    }

    T learning_rate;
    T weight;
    T epsilon;
  };
};

} // namespace troupe::rules
