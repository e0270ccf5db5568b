// SPDX-License-Identifier: Apache-2.0
// The time of an actor's next look at its deadlines, decided without actors.
#pragma once

#include "actors/recording/records.hpp"
#include "messages/errors/assert.hpp"

#include <cstdint>

namespace troupe {

/// An actor sends itself a tick for its next look. A call with a short deadline wants an earlier
/// one, beside the tick that is on its way; the later tick is then of no use, or ticks would become
/// more with each such call.
class look_plan {
public:
  /// A look is wanted. @param due No later. @returns Whether a tick is to be sent, to come then.
  [[nodiscard]] bool wants_tick(job_time due) {
    if (next_ <= due) return false;
    next_ = due;
    ++ticks_;
    return true;
  }

  /// A tick has come. @returns Whether to look; else another tick comes in time. Nothing is planned
  /// after a look.
  [[nodiscard]] bool takes_tick(job_time now) {
    TROUPE_ASSERT(ticks_ > 0);
    if (--ticks_ > 0 && now < next_) return false;
    next_ = job_time::max();
    return true;
  }

private:
  job_time next_ = job_time::max(); ///< The next look; max: none is planned.
  uint32_t ticks_ = 0;              ///< On their way.
};

} // namespace troupe
