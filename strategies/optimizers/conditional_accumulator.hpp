// SPDX-License-Identifier: Apache-2.0
// Accumulators for trainers that synchronise by rules of their own.
#pragma once

#include "actors/training/accumulator_form.hpp"
#include "actors/world/world.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/payload.hpp"
#include "strategies/contexts/replica_context.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace troupe {

/// The gradients that an accumulator collects.
struct accumulator_options {
  dtype type = dtype::f32;
  /// The shape of every gradient; an extent of -1 may be any. None: the shape of the first one.
  std::optional<troupe::shape> shape;
  reduction reduction_type = reduction::mean;
  std::string name = "conditional_accumulator"; ///< For messages.
};

/// The result of a take.
struct aggregated_gradient {
  troupe::gradient gradient;
  uint32_t count = 0;       ///< Gradients that it is made of; at least as many as were required.
  uint64_t global_step = 0; ///< The accumulator's step that it closed.
};

/// Gradients of different replicas come at different times, and gradients that were computed from
/// old values should not count. An accumulator drops every gradient with a `local_step` behind
/// its own step, tells the sender so, and hands out the mean or sum of the others when there are
/// enough. Each take raises its step by one.
///
/// The common part of both kinds. A cheap handle: copies are the same accumulator, which lives
/// until the last of them is gone; its world outlives it. Functions without a context wait on the
/// thread that made the world. Functions with a context are for step functions, and hold no thread.
/// Source: tensorflow/python/ops/data_flow_ops.py, ConditionalAccumulatorBase.
class conditional_accumulator_base {
public:
  // A move copies, so that a handle that was moved from still means the same.
  conditional_accumulator_base(const conditional_accumulator_base&) = default;
  conditional_accumulator_base& operator=(const conditional_accumulator_base&) = default;

  /// Gradients accepted since the last take.
  [[nodiscard]] uint32_t num_accumulated();
  [[nodiscard]] task<uint32_t> num_accumulated(replica_context& context);

  /// From now on gradients with a smaller `local_step` are stale; the step may be set back, too.
  /// Gradients that have been accepted stay.
  void set_global_step(uint64_t step);

protected:
  conditional_accumulator_base(troupe::world& world, const accumulator_options& options,
                               accumulator_form::layout layout);

  [[nodiscard]] verdict apply(const gradient& value, uint64_t local_step);
  [[nodiscard]] task<verdict> apply(replica_context& context, gradient value, uint64_t local_step);
  [[nodiscard]] aggregated_gradient take(int64_t num_required, const std::stop_token& stop);
  [[nodiscard]] task<aggregated_gradient> take(replica_context& context, int64_t num_required);

private:
  class spawned;

  std::shared_ptr<spawned> spawned_;
};

/// Collects dense gradients.
class conditional_accumulator : public conditional_accumulator_base {
public:
  /// Errors: throws `failure` with type_mismatch if the dtype is no floating one.
  explicit conditional_accumulator(troupe::world& world, const accumulator_options& options = {});

  /// Gives a gradient; never waits.
  /// @returns Whether it was accepted or stale; a stale gradient is dropped unseen.
  /// Errors: throws `failure` with invalid_argument for another dtype, or a shape that is not the
  /// declared one or that of the gradients accepted since the last take.
  verdict apply_grad(const tensor& grad, uint64_t local_step = 0);
  [[nodiscard]] task<verdict> apply_grad(replica_context& context, tensor grad,
                                         uint64_t local_step);

  /// Waits until at least `num_required` gradients are there and it is this take's turn.
  /// @param stop Ends the wait.
  /// Errors: throws `failure` with invalid_argument unless `num_required` is positive; cancelled
  /// after a stop; stalled, in the virtual world, if nothing is left that could bring them.
  [[nodiscard]] aggregated_gradient take_grad(int64_t num_required,
                                              const std::stop_token& stop = {});
  [[nodiscard]] task<aggregated_gradient> take_grad(replica_context& context, int64_t num_required);
};

/// Collects rows of a larger array. The mean of a row is over the gradients that hold it.
class sparse_conditional_accumulator : public conditional_accumulator_base {
public:
  /// Errors: throws `failure` with type_mismatch if the dtype is no floating one.
  explicit sparse_conditional_accumulator(troupe::world& world,
                                          const accumulator_options& options = {});

  /// Gives rows; never waits. Row numbers may be i32 or i64.
  /// @param grad Its `dense_extents` may be empty: then they are not compared with the shape.
  /// Errors: throws `failure` with invalid_argument, as `check_gradient` says and in its order.
  verdict apply_indexed_slices_grad(indexed_slices grad, uint64_t local_step = 0);
  [[nodiscard]] task<verdict> apply_indexed_slices_grad(replica_context& context,
                                                        indexed_slices grad, uint64_t local_step);

  /// Gives rows by their numbers, values and shape, as the call above.
  verdict apply_grad(tensor indices, tensor values, const std::optional<shape>& dense_shape = {},
                     uint64_t local_step = 0);

  /// As for dense gradients. The result holds `indexed_slices`: the rows that occurred, ascending,
  /// each once; the first of its `dense_extents` is the declared one, or -1.
  [[nodiscard]] aggregated_gradient take_indexed_slices_grad(int64_t num_required,
                                                             const std::stop_token& stop = {});
  [[nodiscard]] task<aggregated_gradient> take_indexed_slices_grad(replica_context& context,
                                                                   int64_t num_required);
};

} // namespace troupe
