// SPDX-License-Identifier: Apache-2.0
// Messages of an actor to itself: work is done, a delay is over, it is time to look around.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/interfaces/job_report.hpp"
#include "actors/interfaces/job_snapshot.hpp"
#include "actors/recording/records.hpp"

#include <cstdint>
#include <exception>
#include <memory>

namespace troupe {

/// The coroutine of an actor begins.
struct begin_activity {};

/// Computing is over.
struct work_done {
  uint64_t ticket = 0;       ///< The number of the computation.
  job_time elapsed{0};       ///< On the world's clock.
  std::exception_ptr thrown; ///< The work's exception; null if it threw none.
};

/// A delay is over.
struct delay_over {
  uint64_t ticket = 0; ///< The number of the computation that it belongs to.
};

/// It is time to look for missing actors, or for what else the receiver watches.
struct watch_tick {};

/// Everything else that was due at this moment is done.
struct moment_over {};

/// A coroutine's wait is over: a value of a type that it knows, or why there is none.
struct wake {
  std::shared_ptr<void> value;
  std::exception_ptr thrown;
};

/// A caller outside the actors waits no longer.
struct give_up {};

} // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::begin_activity)
TROUPE_LOCAL_MESSAGE(troupe::work_done)
TROUPE_LOCAL_MESSAGE(troupe::delay_over)
TROUPE_LOCAL_MESSAGE(troupe::watch_tick)
TROUPE_LOCAL_MESSAGE(troupe::moment_over)
TROUPE_LOCAL_MESSAGE(troupe::step_record)
TROUPE_LOCAL_MESSAGE(troupe::job_snapshot)
TROUPE_LOCAL_MESSAGE(troupe::job_report)
TROUPE_LOCAL_MESSAGE(troupe::wake)
TROUPE_LOCAL_MESSAGE(troupe::give_up)
