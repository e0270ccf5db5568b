// SPDX-License-Identifier: Apache-2.0
// Gradients that are both cancelled and stale, counted once.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <map>

namespace troupe {

/// A gradient that was done when its replica was told to stop comes nevertheless: the records have
/// it as cancelled, and in that step or a later one as stale. Totals count it once, as stale. This
/// remembers which replicas were told to stop. Cost: constant per gradient; memory per replica.
class stopped_gradients {
public:
  /// A record has the gradient as cancelled. All cancelled gradients of a record are added before
  /// its stale ones are taken.
  void add(const contribution& cancelled) {
    auto& steps = told_to_stop_[cancelled.replica];
    if (cancelled.local_step != steps.end) steps.first = cancelled.local_step;
    steps.end = cancelled.local_step + 1;
  }

  /// @returns Whether this stale gradient was counted as cancelled: the caller takes that back.
  [[nodiscard]] bool take(const contribution& stale) {
    auto found = told_to_stop_.find(stale.replica);
    if (found == told_to_stop_.end()) return false;
    auto& steps = found->second;
    if (stale.local_step < steps.first || stale.local_step >= steps.end) return false;
    steps.first = stale.local_step + 1;
    return true;
  }

private:
  /// The last steps in a row for which a replica was told to stop, while no gradient for them came.
  struct stopped_steps {
    uint64_t first = 0; ///< As a gradient's `local_step`.
    uint64_t end = 0;   ///< Behind the last.
  };

  std::map<uint32_t, stopped_steps> told_to_stop_;
};

} // namespace troupe
