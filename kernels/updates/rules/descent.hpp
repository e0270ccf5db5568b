// SPDX-License-Identifier: Apache-2.0
// Rules that go down the gradient with one rate for all elements of a variable.
#pragma once

#include "kernels/tensor/host_device.hpp"
#include "kernels/updates/rules/setting.hpp"

#include <array>
#include <string_view>

namespace troupe::rules {

/// Gradient descent: value -= learning_rate * gradient.
struct sgd {
  double learning_rate = 0.01;
  double weight_decay = 0; ///< Coupled: this times the value is added to the gradient.

  static constexpr std::string_view name = "sgd";
  static constexpr std::array<std::string_view, 0> slot_names{};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("weight_decay", rule.weight_decay, setting_range::non_negative);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const sgd& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        weight_decay(static_cast<T>(settings.weight_decay)) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient, std::array<T, slot_names.size()>&) const {
      gradient = weight_decay != 0 ? gradient + weight_decay * value : gradient;
      return value - learning_rate * gradient;
    }

    T learning_rate;
    T weight_decay;
  };
};

/// Momentum: velocity = momentum * velocity + gradient; value -= learning_rate * velocity.
/// Nesterov's form looks ahead: value -= learning_rate * (gradient + momentum * velocity).
/// Source: Sutskever et al., "On the importance of initialization and momentum in deep learning",
/// 2013, in the form of TensorFlow's MomentumOptimizer and of PyTorch's SGD: the velocity is free
/// of the learning rate. (In Keras' it holds the rate; the steps are the same while that is
/// constant.)
struct momentum {
  double learning_rate = 0.01;
  double decay = 0.9; ///< Share of the velocity that a step keeps: "momentum" in the paper.
  bool nesterov = false;
  double weight_decay = 0; ///< Coupled: this times the value is added to the gradient.

  static constexpr std::string_view name = "momentum";
  static constexpr std::array<std::string_view, 1> slot_names{"momentum"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("momentum", rule.decay, setting_range::decay);
    visit("nesterov", rule.nesterov, setting_range::flag);
    visit("weight_decay", rule.weight_decay, setting_range::non_negative);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const momentum& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        decay(static_cast<T>(settings.decay)), weight_decay(static_cast<T>(settings.weight_decay)),
        nesterov(settings.nesterov) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
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

/// Lion: momentum of which only the sign counts, so that every element moves by the learning rate.
///   value    -= learning_rate * decoupled_weight_decay * value
///   direction = beta1 * m + (1 - beta1) * gradient
///   value    -= learning_rate * sign(direction), where the sign of 0 is 0
///   m        += (1 - beta2) * (gradient - m)
/// The slot is "momentum" in Keras. The learning rate should be 3 to 10 times less than Adam's, and
/// the decay greater by as much.
/// Source: Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2, with
/// the defaults of Keras' Lion: its decay is 0.
struct lion {
  double learning_rate = 0.001;
  double beta1 = 0.9;  ///< Share of the mean in the direction.
  double beta2 = 0.99; ///< Share of the mean that a step keeps.
  double decoupled_weight_decay = 0;

  static constexpr std::string_view name = "lion";
  static constexpr std::array<std::string_view, 1> slot_names{"m"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("beta1", rule.beta1, setting_range::decay);
    visit("beta2", rule.beta2, setting_range::decay);
    visit("decoupled_weight_decay", rule.decoupled_weight_decay, setting_range::non_negative);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const lion& settings)
      : learning_rate(static_cast<T>(settings.learning_rate)),
        mean_share(static_cast<T>(settings.beta1)),
        gradient_share(static_cast<T>(1 - settings.beta1)),
        mean_weight(static_cast<T>(1 - settings.beta2)),
        shrinkage(static_cast<T>(settings.learning_rate * settings.decoupled_weight_decay)) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      // In this form a beta1 of 0 leaves the gradient's own sign; as `m` is made, a large mean
      // would round a small gradient away.
      T direction = mean_share * slots[0] + gradient_share * gradient;
      T sign = direction > 0 ? T{1} : direction < 0 ? T{-1} : direction; // a gradient of NaN shows
      slots[0] = slots[0] + mean_weight * (gradient - slots[0]);
      return value - shrinkage * value - learning_rate * sign;
    }

    T learning_rate;
    T mean_share;
    T gradient_share;
    T mean_weight;
    T shrinkage;
  };
};

} // namespace troupe::rules
