// SPDX-License-Identifier: Apache-2.0
// Layer-wise rules: the norms of a whole variable decide how far each of its elements moves.
#pragma once

#include "kernels/tensor/host_device.hpp"
#include "kernels/updates/rules/adam.hpp"
#include "kernels/updates/rules/setting.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace troupe::rules {

/// The lengths of a variable and of the direction in which a rule would move it.
struct layer_norms {
  double variable = 0;
  double direction = 0;
};

// Besides what every rule has, `for_elements` of a layer-wise rule has
//   direction(value, gradient, slots)   an element of the direction; may use up its slots
//   scale_to(settings, norms)           scales the step to the norms, and
//   for_elements(settings, norms)       the rule with its step scaled so.

/// LARS: momentum with a rate that follows the ratio of the norms of variable and gradient, so that
/// one learning rate suits all layers of a large batch.
///   trust    = trust_coefficient * |variable|
///                / (|gradient| + weight_decay * |variable| + epsilon),
///              1 where either norm is 0
///   step     = learning_rate * trust * (gradient + weight_decay * value)
///   velocity = momentum * velocity + step
///   value   -= velocity, or with Nesterov's look ahead momentum * velocity + step
/// Source: You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017,
/// algorithm 1, with the epsilon, the look ahead and the case of norms 0 of TensorFlow's
/// LARSOptimizer.
struct lars {
  double learning_rate = 0.1;
  double decay = 0.9;               ///< Share of the velocity that a step keeps: "momentum".
  double trust_coefficient = 0.001; ///< "eta" in the paper, "eeta" in TensorFlow.
  double weight_decay = 0.0001;     ///< Coupled, and part of the norm that the rate follows.
  double epsilon = 0;
  bool nesterov = false;

  static constexpr std::string_view name = "lars";
  static constexpr std::array<std::string_view, 1> slot_names{"momentum"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("momentum", rule.decay, setting_range::decay);
    visit("trust_coefficient", rule.trust_coefficient, setting_range::positive);
    visit("weight_decay", rule.weight_decay, setting_range::non_negative);
    visit("epsilon", rule.epsilon, setting_range::non_negative);
    visit("nesterov", rule.nesterov, setting_range::flag);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const lars& settings)
      : rate(static_cast<T>(settings.learning_rate)), decay(static_cast<T>(settings.decay)),
        weight_decay(static_cast<T>(settings.weight_decay)), nesterov(settings.nesterov) {}

    for_elements(const lars& settings, layer_norms norms) : for_elements(settings) {
      scale_to(settings, norms);
    }

    TROUPE_HOST_DEVICE void scale_to(const lars& settings, layer_norms norms) {
      if (!(norms.variable > 0 && norms.direction > 0)) return;
      auto opposed = norms.direction + settings.weight_decay * norms.variable + settings.epsilon;
      rate = static_cast<T>(settings.learning_rate
                            * (settings.trust_coefficient * norms.variable / opposed));
    }

    TROUPE_HOST_DEVICE T direction(T, T gradient, const std::array<T, slot_names.size()>&) const {
      return gradient;
    }

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      T step = rate * (gradient + weight_decay * value);
      T velocity = decay * slots[0] + step;
      slots[0] = velocity;
      return value - (nesterov ? decay * velocity + step : velocity);
    }

    T rate;
    T decay;
    T weight_decay;
    bool nesterov;
  };
};

/// LAMB: Adam with a step as long, in each variable, as the variable itself.
///   m, v      as `adam`
///   direction = m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + epsilon)
///             + weight_decay * value
///   trust     = |variable| / |direction|, 1 where either norm is 0
///   value    -= learning_rate * trust * direction
/// Source: You et al., "Large batch optimization for deep learning: training BERT in 76 minutes",
/// 2020, algorithm 2, in the form of TensorFlow Addons' LAMB: no bounds on the norm of the
/// variable.
struct lamb {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0; ///< This times the value is part of the direction and of its norm.
  uint64_t step = 1;

  static constexpr std::string_view name = "lamb";
  static constexpr auto slot_names = adam::slot_names;

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    adam::visit_settings(rule, visit);
    visit("weight_decay", rule.weight_decay, setting_range::non_negative);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const lamb& settings)
      : mean_weight(static_cast<T>(1 - settings.beta1)),
        square_weight(static_cast<T>(1 - settings.beta2)),
        epsilon(static_cast<T>(settings.epsilon)),
        weight_decay(static_cast<T>(settings.weight_decay)),
        rate(static_cast<T>(settings.learning_rate)) {
      auto steps = static_cast<double>(settings.step);
      mean_correction = static_cast<T>(1 / (1 - std::pow(settings.beta1, steps)));
      square_correction = static_cast<T>(1 / (1 - std::pow(settings.beta2, steps)));
    }

    for_elements(const lamb& settings, layer_norms norms) : for_elements(settings) {
      scale_to(settings, norms);
    }

    TROUPE_HOST_DEVICE void scale_to(const lamb& settings, layer_norms norms) {
      if (norms.variable > 0 && norms.direction > 0)
        rate = static_cast<T>(settings.learning_rate * (norms.variable / norms.direction));
    }

    TROUPE_HOST_DEVICE T direction(T value, T gradient,
                                   std::array<T, slot_names.size()>& slots) const {
      slots[0] = slots[0] + mean_weight * (gradient - slots[0]);
      slots[1] = slots[1] + square_weight * (gradient * gradient - slots[1]);
      return slots[0] * mean_correction / (std::sqrt(slots[1] * square_correction) + epsilon)
             + weight_decay * value;
    }

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      return value - rate * direction(value, gradient, slots);
    }

    T mean_weight;
    T square_weight;
    T epsilon;
    T weight_decay;
    T rate;
    T mean_correction;
    T square_correction;
  };
};

} // namespace troupe::rules
