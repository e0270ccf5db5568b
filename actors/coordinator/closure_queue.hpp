// SPDX-License-Identifier: Apache-2.0
// The queue of closures: which one goes next, and how an error affects the others.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

/// Workers that come and go make the calls, and one that fails must stop the others without leaving
/// any behind. The queue knows every closure by a number, and where it is: queued, in flight or
/// gone. The first error is kept until it is taken, which is possible when nothing is in flight.
/// Until then no closure goes out, and closures that are queued or come back are cancelled.
///
/// Source: TensorFlow, `_CoordinatedClosureQueue`.
class closure_queue {
public:
  /// @param capacity Closures that may be queued at a time; at least 1.
  explicit closure_queue(size_t capacity) : capacity_(capacity) {}

  /// Whether another closure has to wait before it is put. Closures that were put back may exceed
  /// the capacity.
  [[nodiscard]] bool is_full() const { return queue_.size() >= capacity_; }

  /// Whether there is an error that was not taken.
  [[nodiscard]] bool has_failed() const { return failure_.has_value(); }

  /// Whether none is queued or in flight.
  [[nodiscard]] bool is_idle() const { return queue_.empty() && in_flight_.empty(); }

  [[nodiscard]] const std::set<uint64_t>& in_flight() const { return in_flight_; }

  /// A new closure, behind all others. @returns False if it is cancelled, because of an error.
  [[nodiscard]] bool put(uint64_t closure);

  /// The next closure, which is in flight from now on; nothing while there is an error.
  [[nodiscard]] std::optional<uint64_t> take();

  /// A closure in flight has returned.
  void finish(uint64_t closure) { in_flight_.erase(closure); }

  /// A closure in flight has failed. The first error is kept, and the queue is emptied; the caller
  /// tells the closures in flight that they are not needed.
  /// @returns The closures that were queued, which are cancelled.
  [[nodiscard]] std::vector<uint64_t> fail(uint64_t closure, error reason);

  /// The worker that had a closure in flight is gone: the closure is the next to be taken.
  /// @returns False if it is cancelled, because of an error.
  [[nodiscard]] bool put_back(uint64_t closure);

  /// The error, if there is one and nothing is in flight. After this there is none.
  [[nodiscard]] std::optional<error> take_error();

  /// Keeps an error that was taken, but that no caller wants yet.
  void keep_error(error reason) { failure_ = std::move(reason); }

  /// Empties the queue. @returns The closures that were queued.
  [[nodiscard]] std::vector<uint64_t> cancel_queued();

private:
  size_t capacity_;
  std::deque<uint64_t> queue_;
  std::set<uint64_t> in_flight_;
  std::optional<error> failure_; ///< The first since one was taken.
};

} // namespace troupe
