// SPDX-License-Identifier: Apache-2.0
// Replicas with inputs of different lengths.
#pragma once

#include "strategies/contexts/computed_gradients.hpp"
#include "strategies/contexts/replica_context.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

/// A step that all replicas make, as each of them knows it.
struct joined_step {
  uint32_t with_input = 0; ///< Replicas that have input for it; at least 1.
  bool has_input = false;  ///< Whether this one does.
};

/// Replicas have to make the same calls, so one must not leave when its own input ends: the others
/// would wait for it. It joins them instead, in steps without input, until none has any.
/// Distributed datasets end together by themselves; this is for inputs of one's own.
///
///     auto step = [=](replica_context& context, joined_step now,
///                     std::optional<tensor> batch) -> task<void> {
///       auto gradients = now.has_input ? ... : zero_gradients(weights);
///       auto applying = optimizer.apply_gradients(context, std::move(gradients), now.with_input);
///       co_await applying;
///     };
///     auto joining = join(context, next, step);
///     auto steps = co_await joining;
///
/// A replica without input brings gradients of the same kind as the others, which add nothing:
/// zeros, or no rows. The optimizer's mean is one over the replicas that have input
/// (`apply_gradients` with their number), where PyTorch's default is one over all of them.
///
/// @param next `std::optional<Input> next()`: this replica's next input; not called again after the
/// last one. @param step `task<void> step(replica_context&, joined_step, std::optional<Input>)`.
/// Cost: beside what `step` does, an all_reduce of one number in each step, and one at the end.
/// @returns Steps made: as many as the longest input has.
/// Errors: throws `failure` with invalid_argument for an empty function; as
/// `replica_context::all_reduce`; rethrows what `next` and `step` throw.
/// Source: torch.distributed.algorithms.Join.
template <class Next, class Step>
[[nodiscard]] task<uint64_t> join(replica_context& context, Next next, Step step) {
  check_given("join", next);
  check_given("join", step);
  uint64_t steps = 0;
  auto input = next();
  while (true) {
    joined_step now{.has_input = input.has_value()};
    auto counting = context.all_reduce(reduce_op::sum, now.has_input ? int64_t{1} : int64_t{0});
    auto counted = co_await counting;
    if (counted == 0) co_return steps;
    now.with_input = static_cast<uint32_t>(counted);
    auto stepping = step(context, now, std::move(input));
    co_await stepping;
    ++steps;
    input = now.has_input ? next() : std::nullopt;
  }
}

/// Gradients that change nothing.
[[nodiscard]] std::vector<gradient_and_variable>
zero_gradients(std::span<const variable> variables);

} // namespace troupe
