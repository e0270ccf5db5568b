// SPDX-License-Identifier: Apache-2.0
// The step of a replica of `troupe train`, whatever it learns.
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

/// Draws a batch and differentiates its loss. Called by the computing threads of all replicas at
/// once, with the precision that the step was given.
/// Errors: in what is returned.
using batch_work
  = std::function<expected<step_on_stream>(compute_stream& on, std::span<const tensor> variables,
                                           const batch_draws& draws, const differentiation& how)>;

/// Reads the variables, has their gradients computed for a batch of its own on the replica's
/// device, and hands them to the optimizer.
/// @param examples Examples in a batch.
/// @param variables In the order that the work expects.
/// @param precision Precision of matrix products. With f16, each replica has a dynamic
/// `loss_scale`, which checkpoints hold. If a gradient is not finite, the replica computes its
/// batch again with half the scale, and hands on none before. It throws `failure` with
/// failed_precondition, if a scale of 1 does not help.
[[nodiscard]] step_function training_step(batch_work work, uint32_t examples,
                                          job_optimizer optimizer, std::vector<variable> variables,
                                          product_precision precision = product_precision::full);

} // namespace troupe
