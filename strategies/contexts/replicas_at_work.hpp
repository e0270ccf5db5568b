// SPDX-License-Identifier: Apache-2.0
// Knows which replicas of a process are at work.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

namespace troupe {

/// The replicas of one process do not wait for each other. Work that one of them does for all is
/// done by the first one that is at work.
///
/// Thread: any.
class replicas_at_work {
public:
  /// A replica begins, or begins again. Replicas come in any order.
  void enter(uint32_t replica) {
    std::lock_guard guard{mutex_};
    auto place = std::ranges::lower_bound(replicas_, replica);
    if (place == replicas_.end() || *place != replica) replicas_.insert(place, replica);
  }

  /// A replica was lost.
  void leave(uint32_t replica) {
    std::lock_guard guard{mutex_};
    std::erase(replicas_, replica);
  }

  [[nodiscard]] bool is_first(uint32_t replica) const {
    std::lock_guard guard{mutex_};
    return !replicas_.empty() && replicas_.front() == replica;
  }

private:
  mutable std::mutex mutex_;
  std::vector<uint32_t> replicas_; ///< Sorted.
};

} // namespace troupe
