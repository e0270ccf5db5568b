// SPDX-License-Identifier: Apache-2.0
// The restarts that a launched job has left.
#pragma once

#include "tools/launch/task_process.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace troupe {

/// Counts restarts. Failures soon after a worker's loss are often its consequences: the others end
/// because it is missing, and it may come back too early. They cost no restart of their own. Reads
/// no clock: the caller passes times since the start.
class restart_budget {
public:
  using duration = std::chrono::milliseconds;

  enum class answer : uint8_t {
    refused,   ///< No restart is left.
    counted,   ///< One restart less is left.
    uncounted, ///< The failure is the consequence of a loss that has cost a restart already.
  };

  /// @param restarts The most restarts; evaluators have as many beside.
  /// @param consequence_time The longest time between a loss and its consequences.
  restart_budget(uint32_t restarts, duration consequence_time)
    : consequence_time_(consequence_time), left_(restarts), left_for_evaluators_(restarts) {}

  /// Takes a restart for a task that has failed.
  /// @param restarted_at Its last restart alone; empty: there was none.
  [[nodiscard]] answer take(task_end end, duration time, std::optional<duration> restarted_at);

  /// Takes a restart for an evaluator. @returns Whether one was left.
  [[nodiscard]] bool take_for_evaluator();

  /// All tasks are started again: later failures are no consequences of earlier losses.
  void on_restart() { counted_at_.reset(); }

  [[nodiscard]] uint32_t left() const { return left_; }

  [[nodiscard]] uint32_t left_for_evaluators() const { return left_for_evaluators_; }

private:
  duration consequence_time_;
  uint32_t left_;
  uint32_t left_for_evaluators_;
  std::optional<duration> counted_at_; // when a restart was last counted
};

} // namespace troupe
