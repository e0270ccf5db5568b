// SPDX-License-Identifier: Apache-2.0
// An accumulator's decisions which gradients are part of a step and which are late, without actors.
#pragma once

#include "actors/policies/asynchronous_rule.hpp"
#include "messages/payload.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

namespace troupe {

/// The gradients of a step that was closed.
struct closed_gradients {
  std::vector<arrival> accepted; ///< In order of arrival.
  std::vector<arrival> stale;    ///< Dropped since the step before was closed.
};

/// An accumulator and the simulator's direct engine collect by the same rules. A gradient of a past
/// step is dropped, and everything that came before the step is closed is part of it. Where
/// training is asynchronous, no gradient is dropped: a step has as many as it needs, and the others
/// wait for the next. Gradients that will never come may count as given there: a step may then have
/// fewer than it needs, or none. Source: tensorflow/core/kernels/conditional_accumulator_base.h.
class gradient_ledger {
public:
  /// @param first_step The step that the job begins with.
  /// @param one_per_replica Whether a second gradient of a replica to the same step is dropped.
  /// @param asynchronous Nothing: training is synchronous.
  explicit gradient_ledger(uint64_t first_step = 0, bool one_per_replica = false,
                           std::optional<asynchronous_rule> asynchronous = {})
    : step_(first_step), one_per_replica_(one_per_replica), asynchronous_(asynchronous) {}

  /// The step that is collected for.
  [[nodiscard]] uint64_t step() const { return step_; }

  /// Gradients that are there for this step and later ones, or count as given.
  [[nodiscard]] uint64_t given() const { return accepted_.size() + missing_; }

  /// Drops a gradient that came at `now` if it is too late, or its replica's second one.
  /// @returns Whether it was dropped.
  [[nodiscard]] bool drop_if_late(const origin& from, std::chrono::nanoseconds now);

  /// Counts a gradient that came at `now`. @pre It was not dropped.
  /// @returns The first step that its replica may go on with; 0 = any.
  [[nodiscard]] uint64_t accept(const origin& from, std::chrono::nanoseconds now);

  /// So many gradients for `of_step` and later steps will never come.
  void count_missing(uint32_t gradients, uint64_t of_step);

  /// Closes the step, and begins to collect for the next. @param required How many it needs.
  /// @pre given() >= required.
  [[nodiscard]] closed_gradients close_step(uint32_t required);

  /// Goes on with another step, and keeps the gradients that were given.
  void set_step(uint64_t step) { step_ = step; }

  /// Forgets all gradients of this step and later ones: they will be given again.
  void forget();

private:
  uint64_t step_;
  bool one_per_replica_;
  std::optional<asynchronous_rule> asynchronous_;
  std::vector<arrival> accepted_;       ///< In order of arrival.
  std::unordered_set<uint32_t> givers_; ///< Their replicas, if each may give one.
  std::vector<arrival> stale_;          ///< Since the step before was closed.
  uint64_t missing_ = 0;                ///< Gradients that count as given, and will never come.
};

} // namespace troupe
