// SPDX-License-Identifier: Apache-2.0
// Moving closures between the queue and the workers.
#include "actors/coordinator/closure_queue.hpp"

#include "messages/errors/assert.hpp"

#include <utility>

namespace troupe {

bool closure_queue::put(uint64_t closure) {
  if (has_failed()) return false;
  queue_.push_back(closure);
  return true;
}

std::optional<uint64_t> closure_queue::take() {
  if (has_failed() || queue_.empty()) return std::nullopt;
  auto next = queue_.front();
  queue_.pop_front();
  in_flight_.insert(next);
  return next;
}

std::vector<uint64_t> closure_queue::fail(uint64_t closure, error reason) {
  TROUPE_ASSERT(reason.code != errc::none);
  in_flight_.erase(closure);
  if (!failure_) failure_ = std::move(reason);
  return cancel_queued();
}

bool closure_queue::put_back(uint64_t closure) {
  in_flight_.erase(closure);
  if (has_failed()) return false;
  queue_.push_front(closure);
  return true;
}

std::optional<error> closure_queue::take_error() {
  if (!in_flight_.empty()) return std::nullopt;
  return std::exchange(failure_, std::nullopt);
}

std::vector<uint64_t> closure_queue::cancel_queued() {
  std::vector<uint64_t> cancelled{queue_.begin(), queue_.end()};
  queue_.clear();
  return cancelled;
}

} // namespace troupe
