// SPDX-License-Identifier: Apache-2.0
// The workers' instances, such as iterators, that closures may still ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace troupe {

/// Each worker keeps an instance of its own, such as an iterator, for closures to come: until no
/// handle in the process that schedules, and no closure, refers to it any more. Thread: any.
class instances_in_use : public std::enable_shared_from_this<instances_in_use> {
public:
  /// A new instance. @returns Its number, which keeps it in use together with all copies of it.
  [[nodiscard]] std::shared_ptr<const uint32_t> begin() {
    std::lock_guard guard{mutex_};
    in_use_.insert(++last_);
    auto end = [self = shared_from_this()](const uint32_t* instance) {
      self->forget(*instance);
      delete instance;
    };
    return {new uint32_t{last_}, std::move(end)};
  }

  /// The instances in use, ascending.
  [[nodiscard]] std::vector<uint32_t> all() const {
    std::lock_guard guard{mutex_};
    return {in_use_.begin(), in_use_.end()};
  }

private:
  void forget(uint32_t instance) {
    std::lock_guard guard{mutex_};
    in_use_.erase(instance);
  }

  mutable std::mutex mutex_;
  std::set<uint32_t> in_use_;
  uint32_t last_ = 0;
};

} // namespace troupe
