// SPDX-License-Identifier: Apache-2.0
// The reads of a node that wait for bytes in shared memory.
#pragma once

#include <vector>

namespace troupe {

/// A read of a connection by shared memory.
class ring_read {
public:
  virtual ~ring_read() = default;

  [[nodiscard]] virtual bool has_news() const = 0;

  /// Has the writer wake this process. @returns False if there are news meanwhile.
  [[nodiscard]] virtual bool sleeps() = 0;

  /// Tells its caller. @pre `has_news`.
  virtual void complete() = 0;
};

/// A thread that looks at memory sees a message sooner than one that asks the system, and its peer
/// saves a call of the system, too. So a peer wakes this process only for reads that were waiting
/// when the thread fell asleep.
///
/// Thread: one at a time, the one that reads.
class ring_watch {
public:
  void add(ring_read& read) { waiting_.push_back(&read); }

  /// The read is completed, or given up, by another call. No error if it was not added.
  void remove(ring_read& read) { std::erase(waiting_, &read); }

  /// Completes a read that has news. @returns Whether there was one.
  bool complete_one();

  /// From now on peers wake this process. @returns False if a read was completed instead.
  bool may_sleep();

private:
  std::vector<ring_read*> waiting_; ///< Their writers do not wake this process.
};

} // namespace troupe
