// SPDX-License-Identifier: Apache-2.0
// Adam and its descendants: a mean of gradients, divided by a measure of their size.
#pragma once

#include "kernels/tensor/host_device.hpp"
#include "kernels/updates/rules/setting.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace troupe::rules {

// All of these keep means that begin at 0 and are corrected for it: `step`, the number of the
// update from 1, is no setting: the holder of the slots counts it.

/// Adam: a mean of gradients over the root of a mean of their squares.
///   m     += (1 - beta1) * (gradient - m)
///   v     += (1 - beta2) * (gradient^2 - v)
///   value -= rate * m / (sqrt(v) + epsilon),
///   rate   = learning_rate * sqrt(1 - beta2^step) / (1 - beta1^step)
/// Source: Kingma and Ba, "Adam", 2015, algorithm 1 in the more efficient order of section 2. The
/// epsilon is the paper's "epsilon hat" (added to the uncorrected root), as in TensorFlow.
/// PyTorch adds its epsilon e to the corrected root: the epsilon here is e * sqrt(1 - beta2^step).
struct adam {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  uint64_t step = 1;

  static constexpr std::string_view name = "adam";
  static constexpr std::array<std::string_view, 2> slot_names{"m", "v"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    visit("learning_rate", rule.learning_rate, setting_range::non_negative);
    visit("beta1", rule.beta1, setting_range::decay);
    visit("beta2", rule.beta2, setting_range::decay);
    visit("epsilon", rule.epsilon, setting_range::non_negative);
  }

  template <class T>
  struct for_elements {
    template <class Settings>
    explicit for_elements(const Settings& settings)
      : mean_weight(static_cast<T>(1 - settings.beta1)),
        square_weight(static_cast<T>(1 - settings.beta2)),
        epsilon(static_cast<T>(settings.epsilon)) {
      auto steps = static_cast<double>(settings.step);
      auto mean_bias = 1 - std::pow(settings.beta1, steps);
      auto square_bias = 1 - std::pow(settings.beta2, steps);
      rate = static_cast<T>(settings.learning_rate * std::sqrt(square_bias) / mean_bias);
    }

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      advance(gradient, slots[0], slots[1]);
      return value - rate * slots[0] / (std::sqrt(slots[1]) + epsilon);
    }

    TROUPE_HOST_DEVICE void advance(T gradient, T& mean, T& square) const {
      mean = mean + mean_weight * (gradient - mean);
      square = square + square_weight * (gradient * gradient - square);
    }

    T mean_weight;
    T square_weight;
    T epsilon;
    T rate;
  };
};

/// AdamW: Adam, with weight decay beside the gradient in place of in it:
///   value -= learning_rate * decoupled_weight_decay * value, then as `adam`
/// Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, algorithm 2 as
/// Keras and PyTorch apply it: the decay follows the learning rate and its schedule.
struct adamw {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decoupled_weight_decay = 0.004; ///< Keras' default; 0.01 in PyTorch.
  uint64_t step = 1;

  static constexpr std::string_view name = "adamw";
  static constexpr auto slot_names = adam::slot_names;

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    adam::visit_settings(rule, visit);
    visit("decoupled_weight_decay", rule.decoupled_weight_decay, setting_range::non_negative);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const adamw& settings)
      : adam_step(settings),
        shrinkage(static_cast<T>(settings.learning_rate * settings.decoupled_weight_decay)) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      return adam_step(value - shrinkage * value, gradient, slots);
    }

    adam::for_elements<T> adam_step;
    T shrinkage;
  };
};

/// AMSGrad: Adam, or AdamW, with the largest mean of squares so far in the divisor, which never
/// shrinks.
///   value -= learning_rate * decoupled_weight_decay * value
///   m, v and the rate as `adam`
///   vhat   = max(vhat, v)
///   value -= rate * m / (sqrt(vhat) + epsilon)
/// Source: Reddi, Kale and Kumar, "On the convergence of Adam and beyond", 2018, algorithm 2 with
/// Adam's correction, as Keras' `Adam(amsgrad=True)`. PyTorch's is the same with its epsilon
/// converted as for `adam`.
struct amsgrad {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decoupled_weight_decay = 0; ///< 0: Adam's; more than 0: AdamW's.
  uint64_t step = 1;

  static constexpr std::string_view name = "amsgrad";
  static constexpr std::array<std::string_view, 3> slot_names{"m", "v", "vhat"};

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    adamw::visit_settings(rule, visit);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const amsgrad& settings)
      : as_adam(settings),
        shrinkage(static_cast<T>(settings.learning_rate * settings.decoupled_weight_decay)) {}

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      as_adam.advance(gradient, slots[0], slots[1]);
      slots[2] = slots[2] > slots[1] ? slots[2] : slots[1]; // a gradient of NaN shows
      return value - shrinkage * value
             - as_adam.rate * slots[0] / (std::sqrt(slots[2]) + as_adam.epsilon);
    }

    adam::for_elements<T> as_adam;
    T shrinkage;
  };
};

/// Adamax: Adam with the largest gradient of late in place of the mean of squares.
///   m     += (1 - beta1) * (gradient - m)
///   v      = max(beta2 * v, |gradient|)
///   value -= learning_rate / (1 - beta1^step) * m / (v + epsilon)
/// Source: Kingma and Ba, "Adam", 2015, algorithm 2, with the epsilon of TensorFlow's Adamax
/// (PyTorch adds it to |gradient| instead; with 0 both agree).
struct adamax {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  uint64_t step = 1;

  static constexpr std::string_view name = "adamax";
  static constexpr auto slot_names = adam::slot_names;

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    adam::visit_settings(rule, visit);
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const adamax& settings)
      : mean_weight(static_cast<T>(1 - settings.beta1)), decay(static_cast<T>(settings.beta2)),
        epsilon(static_cast<T>(settings.epsilon)) {
      auto bias = 1 - std::pow(settings.beta1, static_cast<double>(settings.step));
      rate = static_cast<T>(settings.learning_rate / bias);
    }

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      T mean = slots[0] + mean_weight * (gradient - slots[0]);
      T faded = decay * slots[1];
      T size = std::abs(gradient);
      T largest = faded > size ? faded : size; // a gradient of NaN shows
      slots[0] = mean;
      slots[1] = largest;
      return value - rate * mean / (largest + epsilon);
    }

    T mean_weight;
    T decay;
    T epsilon;
    T rate;
  };
};

/// Nadam: Adam with Nesterov's look ahead and a momentum that grows to beta1.
///   momentum(t) = beta1 * (1 - 0.96^(momentum_decay * t) / 2)
///   product(t)  = momentum(1) * ... * momentum(t)
///   m     += (1 - beta1) * (gradient - m)
///   v     += (1 - beta2) * (gradient^2 - v)
///   ahead  = (1 - momentum(step)) / (1 - product(step)) * gradient
///          + momentum(step + 1) / (1 - product(step + 1)) * m
///   value -= learning_rate * ahead / (sqrt(v / (1 - beta2^step)) + epsilon)
/// The product is worked out anew from the step each time, so there is no state to save: it counts
/// only until it is too small to change 1 (355 factors for a beta1 of 0.9).
/// Source: Dozat, "Incorporating Nesterov momentum into Adam", 2016, section 5.
struct nadam {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  double momentum_decay = 0.004; ///< As PyTorch's, and Keras' 2; Keras 3 has 1.
  uint64_t step = 1;

  static constexpr std::string_view name = "nadam";
  static constexpr auto slot_names = adam::slot_names;

  template <class Self, class Visit>
  static void visit_settings(Self& rule, const Visit& visit) {
    adam::visit_settings(rule, visit);
    visit("momentum_decay", rule.momentum_decay, setting_range::non_negative);
  }

  [[nodiscard]] double momentum(uint64_t update_number) const {
    auto exponent = momentum_decay * static_cast<double>(update_number);
    return beta1 * (1 - 0.5 * std::pow(0.96, exponent));
  }

  /// momentum(1) * ... * momentum(step), or a smaller number than any that 1 is changed by.
  [[nodiscard]] double product() const {
    double result = 1;
    for (uint64_t i = 1; i <= step && result > 0x1p-54; ++i)
      result *= momentum(i);
    return result;
  }

  template <class T>
  struct for_elements {
    explicit for_elements(const nadam& settings)
      : mean_weight(static_cast<T>(1 - settings.beta1)),
        square_weight(static_cast<T>(1 - settings.beta2)),
        epsilon(static_cast<T>(settings.epsilon)) {
      auto momentum = settings.momentum(settings.step);
      auto next = settings.momentum(settings.step + 1);
      auto product = settings.product();
      auto square_bias = 1 - std::pow(settings.beta2, static_cast<double>(settings.step));
      gradient_rate = static_cast<T>(settings.learning_rate * (1 - momentum) / (1 - product));
      mean_rate = static_cast<T>(settings.learning_rate * next / (1 - product * next));
      square_correction = static_cast<T>(1 / square_bias);
    }

    TROUPE_HOST_DEVICE T operator()(T value, T gradient,
                                    std::array<T, slot_names.size()>& slots) const {
      T mean = slots[0] + mean_weight * (gradient - slots[0]);
      T square = slots[1] + square_weight * (gradient * gradient - slots[1]);
      slots[0] = mean;
      slots[1] = square;
      T ahead = gradient_rate * gradient + mean_rate * mean;
      return value - ahead / (std::sqrt(square * square_correction) + epsilon);
    }

    T mean_weight;
    T square_weight;
    T epsilon;
    T gradient_rate;
    T mean_rate;
    T square_correction;
  };
};

} // namespace troupe::rules
