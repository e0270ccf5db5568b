// SPDX-License-Identifier: Apache-2.0
// Work for a gpu actor, and its device's reports.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/recording/records.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace troupe {

class compute_stream;

/// Work for one stream of a device.
struct device_work {
  uint32_t stream = 0;
  std::string purpose; ///< For errors: "a step of replica 3".
  /// Asks the stream for everything; need not wait for it. Thread: one that computes. An exception
  /// of it goes to the asker, and is no fault of the device. Everything that it refers to lives
  /// until the device is done.
  std::function<void(compute_stream&)> launch;
  job_time timeout{0}; ///< 0: the actor's own deadline.
  /// Whether the answer comes as soon as the work is queued. All that is launched on the device
  /// after the answer comes after the work, so that only the host has to wait for its end.
  bool is_answered_when_queued = false;
};

/// The device has done some work, or has been told all of it if that is when the asker is answered.
struct device_work_done {
  job_time elapsed{0};       ///< From the beginning of the launch, on the world's clock.
  std::exception_ptr thrown; ///< The launch's exception; null if it threw none.
};

/// A piece of work that was launched.
struct launched_work {
  uint64_t ticket = 0;
  job_time began{0};
  std::exception_ptr thrown;
};

/// The device has been told some pieces of work, one after the other; a message to a gpu actor from
/// the thread that launched them.
struct work_launched {
  uint32_t stream = 0;
  std::vector<launched_work> works;
};

/// The device has done some pieces of work; a message to a gpu actor from the device.
struct work_completed {
  std::vector<uint64_t> tickets;
  error refused{}; ///< Why it will not do them, if it said so.
};

} // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::device_work)
TROUPE_LOCAL_MESSAGE(troupe::device_work_done)
TROUPE_LOCAL_MESSAGE(troupe::work_launched)
TROUPE_LOCAL_MESSAGE(troupe::work_completed)
