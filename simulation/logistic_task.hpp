// SPDX-License-Identifier: Apache-2.0
// Logistic regression on data that is drawn, so that the truth is known.
#pragma once

#include "simulation/learning.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// The data that are drawn.
struct logistic_options {
  uint64_t seed = 0;
  uint32_t replicas = 1;
  uint32_t features = 20;  ///< Standard normal numbers, the same kind for all replicas.
  uint32_t batch = 32;     ///< Examples in a gradient, never drawn before.
  uint32_t held_out = 200; ///< Examples of each replica that losses are measured on.
  /// Whether each replica's data has something of its own: a feature that is 1 there and 0
  /// elsewhere, so that no other replica can learn its weight. Else all data are alike.
  bool own_data = false;
};

/// Labels are 1 with probability sigmoid(truth * features): the loss cannot fall below that of the
/// truth, and the weights cannot settle far from it. One variable, "weights": those of the shared
/// features, then, with `own_data`, one for each replica's own.
/// Shape: weights [features (+ replicas)]  f64
class logistic_data {
public:
  explicit logistic_data(const logistic_options& options);

  /// Normal numbers: the shared ones so that their sum in an example deviates by 2, own ones
  /// with a deviation of 2. @returns As "weights".
  [[nodiscard]] const std::vector<double>& truth() const { return truth_; }

  /// The gradient of a replica's n-th batch, and its loss. Units: nats.
  [[nodiscard]] computed_batch differentiate(std::span<const double> weights, uint32_t replica,
                                             uint64_t batch) const;

  /// Mean loss over the held-out examples of these replicas. Units: nats.
  [[nodiscard]] double loss(std::span<const double> weights,
                            std::span<const uint32_t> replicas) const;

private:
  struct example {
    std::vector<double> features; ///< The shared ones.
    bool label = false;
  };

  [[nodiscard]] example draw(uint32_t replica, class random_stream& draws) const;
  [[nodiscard]] double margin(std::span<const double> weights, uint32_t replica,
                              std::span<const double> features) const;

  logistic_options options_;
  std::vector<double> truth_;
  std::vector<std::vector<example>> held_out_; ///< By replica.
};

/// The task that a simulation learns; weights begin at 0.
[[nodiscard]] learning_task logistic_task(const logistic_options& options);

} // namespace troupe
