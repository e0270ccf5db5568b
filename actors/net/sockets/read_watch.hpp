// SPDX-License-Identifier: Apache-2.0
// The reads of a node that its thread looks for itself: in shared memory, and at a few sockets.
#pragma once

#include <vector>

namespace troupe {

/// A read of a connection, which waits.
class watched_read {
public:
  virtual ~watched_read() = default;

  /// Whether there is something to be read; may take it, for `complete`.
  [[nodiscard]] virtual bool has_news() = 0;

  /// Has the writer, or the system, wake this process. @returns False if there are news meanwhile.
  [[nodiscard]] virtual bool sleeps() = 0;

  /// Tells its caller. @pre `has_news`.
  virtual void complete() = 0;
};

/// A thread that looks at memory sees a message sooner than one that asks the system, and its peer
/// saves a call of the system, too. So a peer wakes this process only for reads that were waiting
/// when the thread fell asleep. A thread that does not sleep also takes a message sooner from a
/// socket itself than by asking which of all sockets have one, as long as it looks at few.
///
/// Thread: one at a time, the one that reads.
class read_watch {
public:
  /// A read of a connection by shared memory.
  void add(watched_read& read) { in_memory_.push_back(&read); }

  /// @returns False if enough sockets are looked at: the system is to tell of this one.
  [[nodiscard]] bool add_socket(watched_read& read);

  /// The read is completed, or given up, by another call. No error if it was not added.
  void remove(watched_read& read);

  /// Completes a read from memory that has news. @returns Whether there was one.
  bool complete_one() { return complete_first(in_memory_); }

  /// The same for a read from a socket; takes a call of the system for each.
  bool complete_socket() { return complete_first(at_sockets_); }

  /// From now on peers and the system wake this process. @returns False if a read was completed
  /// instead.
  bool may_sleep();

private:
  static bool complete_first(std::vector<watched_read*>& waiting);

  std::vector<watched_read*> in_memory_; ///< Their writers do not wake this process.
  std::vector<watched_read*> at_sockets_;
};

} // namespace troupe
