// SPDX-License-Identifier: Apache-2.0
// The wait for closures in the process that leads, and its deadline.
#pragma once

#include "actors/coordinator/coordinator.hpp"
#include "actors/world/world.hpp"

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

/// Refuses a call that may wait in a function of a worker or a replica.
/// Errors: throws `failure` with wrong_context.
void check_may_wait(std::string_view call);

/// A closure may take any time, and so may many in turn. But if none ends for very long, a worker
/// hangs, or none has come. Every 10 s a wait says what it waits for, unless time is virtual.
/// Thread: one at a time.
class closure_waiter {
public:
  /// @param stall_deadline How long no closure may end while a caller waits.
  /// @param on_waiting Told what is waited for; null: standard error.
  closure_waiter(std::shared_ptr<const queue_gauge> gauge, job_time stall_deadline,
                 std::function<void(const std::string& line)> on_waiting);

  /// Waits until `over` is. @param timeout A negative one is 0.
  /// Errors: deadline_exceeded after `timeout`, and when no closure has ended for too long, with
  /// the workers and what they run; stalled, if nothing is left to do (virtual world only).
  [[nodiscard]] expected<void> wait(world& world, std::future<void>& over,
                                    job_time timeout = world::for_ever) const;

private:
  std::shared_ptr<const queue_gauge> gauge_;
  job_time stall_deadline_;
  std::function<void(const std::string& line)> on_waiting_;
};

} // namespace troupe
