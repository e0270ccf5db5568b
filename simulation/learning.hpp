// SPDX-License-Identifier: Apache-2.0
// A task that a simulated job learns, and the course of its loss.
#pragma once

#include "actors/recording/records.hpp"
#include "kernels/tensor/tensor.hpp"
#include "kernels/updates/update_plan.hpp"
#include "simulation/distributions/computing_time.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A replica's results from one batch.
struct computed_batch {
  double loss = 0;                 ///< Mean over the batch.
  std::vector<gradient> gradients; ///< In the order of the variables.
  uint32_t examples = 0;
};

/// A model and its data, as functions of values: the arithmetic that a simulation does in no time.
struct learning_task {
  /// Names and values before the first step: f32 or f64.
  std::vector<std::pair<std::string, tensor>> variables;
  /// The work on a replica's n-th batch: the same in every run, whatever else differs. Errors: may
  /// throw `failure`.
  std::function<computed_batch(std::span<const tensor> values, uint32_t replica, uint64_t batch)>
    differentiate;
  /// Mean loss over what was held out of the data of these replicas; at least one. Errors:
  /// may throw `failure`.
  std::function<double(std::span<const tensor> values, std::span<const uint32_t> replicas)>
    evaluate;
};

/// How a task is learnt.
struct learning_options {
  std::shared_ptr<const learning_task> task;
  /// The rule of an update. Where replicas make local steps, its rule must be `rules::sgd`: they do
  /// it, and the update is the average.
  update_plan plan;
  uint64_t evaluate_every = 10; ///< Steps; at least 1.
};

/// The loss at one moment.
struct loss_point {
  uint64_t step = 0;  ///< Updates so far.
  double seconds = 0; ///< In virtual time.
  double loss = 0;    ///< Over all replicas' data, those of the dead included.
  /// Over the data of the slow replicas and of the others; NaN if none is slow.
  double slow_loss = std::numeric_limits<double>::quiet_NaN();
  double fast_loss = std::numeric_limits<double>::quiet_NaN();
};

/// Replicas that take, on average over many draws, more than a quarter longer to compute than the
/// median replica; ascending.
[[nodiscard]] std::vector<uint32_t> slow_replicas(const computing_time& compute, uint32_t replicas);

/// The loss of some values, with that of the slow and of the others.
[[nodiscard]] loss_point evaluate(const learning_task& task, std::span<const tensor> values,
                                  uint32_t replicas, std::span<const uint32_t> slow);

/// Seconds until the loss was `target` for the first time, by straight lines between the points;
/// NaN if it never was.
[[nodiscard]] double seconds_to(double target, std::span<const loss_point> curve);

/// The values after a step of plain gradient descent. The old ones stay as they are.
/// @param gradients In the order of `values`, dense or sparse.
[[nodiscard]] std::vector<tensor> descended(const std::vector<tensor>& values,
                                            const std::vector<gradient>& gradients, double rate);

/// `before - after`, variable by variable: what `rules::sgd` with a rate of 1 has to be given to
/// come to the average of replicas.
[[nodiscard]] std::vector<gradient> differences(const std::vector<tensor>& before,
                                                const std::vector<tensor>& after);

} // namespace troupe
