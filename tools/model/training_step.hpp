// SPDX-License-Identifier: Apache-2.0
// The step of a replica of `troupe train`, for every model.
#pragma once

#include "actors/gpu/step_on_stream.hpp"
#include "kernels/tensor/random.hpp"
#include "strategies/jobs/training.hpp"
#include "tools/job/job_optimizer.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe {

/// The draws of a replica's batch, by (seed, replica, iteration).
struct batch_draws {
  random_key examples;
  random_key dropout;
};

/// Draws a batch and differentiates its loss. Thread: the computing threads of all replicas call it
/// at once. Errors: in the result.
using batch_work = std::function<expected<step_on_stream>(
  compute_stream& stream, std::span<const tensor> variables, const batch_draws& draws,
  const differentiation& settings)>;

/// Makes a step that reads the variables, computes their gradients for the replica's own batch on
/// its device, and hands them to the optimizer.
/// @param examples Examples in a batch.
/// @param variables In the order that the work takes.
/// @param precision Precision of matrix products. With f16, each replica has a dynamic
/// `loss_scale`, which checkpoints hold. If a gradient is not finite, the replica computes its
/// batch again with half the scale before it hands on any gradient. If a scale of 1 does not help,
/// the step throws `failure` with failed_precondition.
[[nodiscard]] step_function training_step(batch_work work, uint32_t examples,
                                          job_optimizer optimizer, std::vector<variable> variables,
                                          product_precision precision = product_precision::full);

} // namespace troupe
