// SPDX-License-Identifier: Apache-2.0
// Moving averages of variables and plain tensors, as TensorFlow's ExponentialMovingAverage.
#pragma once

#include "kernels/updates/update_plan.hpp"
#include "strategies/contexts/strategy.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace troupe {

/// The settings of an average besides its decay.
struct average_options {
  /// Lets young averages forget faster: after n updates, the decay is (1 + n) / (10 + n) if that is
  /// less. n is the number of updates that the variable, or the plain tensor, has had; TensorFlow
  /// takes a count that the caller keeps.
  bool num_updates = false;
  /// Corrects the averages of plain tensors for having begun at 0. The averages of variables begin
  /// with values, and need no correction.
  bool zero_debias = false;
  std::string name = "ExponentialMovingAverage"; ///< The end of the names of averages.
};

/// The last values of a training are noisy: their average over the last steps often predicts
/// better. Averages of variables ("shadows") are kept by the variables' owners and follow in the
/// pass of each update; give this to `sync_replicas_optimizer` as its `variable_averages`, and
/// nothing else needs to be done. Averages of plain tensors are kept here and follow when they are
/// told to.
///
/// Thread: one at a time.
/// Source: TensorFlow's ExponentialMovingAverage: shadow -= (1 - decay) * (shadow - value).
class exponential_moving_average {
public:
  /// @param decay From 0 to 1; the larger, the longer the memory.
  /// Errors: throws `failure` with invalid_argument for another decay, or an empty name.
  explicit exponential_moving_average(double decay, average_options options = {});

  /// The rule of averages that owners are told.
  [[nodiscard]] const moving_average& settings() const { return settings_; }

  /// The name of a variable's average: "<variable>/<name>". There need not be one yet.
  [[nodiscard]] std::string average_name(const variable& variable) const;

  /// The name of a plain tensor's average: "<tensor>/<name>".
  [[nodiscard]] std::string average_name(const std::string& tensor_name) const;

  /// A variable's average as it is now, an immutable view; nothing if none is kept. A job without
  /// averages drops the averages of the job before.
  /// Errors: throws `failure` if the owner is gone; invalid_argument for a variable of another
  /// world.
  [[nodiscard]] std::optional<tensor> average(strategy& strategy, const variable& variable) const;

  /// Which variable to fill from which name of a checkpoint, to go on with the averages: variables
  /// in `averaged` from the names of their averages, the others from their own names.
  [[nodiscard]] std::map<std::string, variable>
  variables_to_restore(std::span<const variable> variables,
                       std::span<const variable> averaged) const;

  /// As above; the trainable variables are the averaged ones.
  [[nodiscard]] std::map<std::string, variable>
  variables_to_restore(std::span<const variable> variables) const;

  /// Takes a new value of a plain tensor into its average, which begins at 0.
  /// Errors: throws `failure` with type_mismatch if the tensor is not floating, or has another
  /// dtype than before; invalid_argument, if it has other extents.
  void apply(const std::string& tensor_name, const tensor& value);

  /// The average of a plain tensor: f64 if the tensor is f64, else f32. Nothing before the first
  /// `apply`.
  [[nodiscard]] std::optional<tensor> average(const std::string& tensor_name) const;

private:
  struct tensor_average {
    dtype type;    ///< The dtype of the values.
    tensor shadow; ///< Not corrected.
    uint64_t updates = 0;
  };

  moving_average settings_;
  bool zero_debias_;
  std::map<std::string, tensor_average> tensors_;
};

} // namespace troupe
