// SPDX-License-Identifier: Apache-2.0
// The limit on restarts, and their backoff.
#include "actors/supervision/restart_ledger.hpp"

#include <algorithm>

namespace troupe {

std::optional<job_time> restart_ledger::next(job_time now) {
  while (!failures_.empty() && now - failures_.front() >= options_.within)
    failures_.pop_front();
  if (failures_.size() >= options_.restarts) return std::nullopt;
  auto delay = std::min(options_.backoff, options_.backoff_max);
  for (size_t i = 0; i < failures_.size() && delay < options_.backoff_max; ++i)
    delay = delay < options_.backoff_max / 2 ? delay * 2 : options_.backoff_max;
  failures_.push_back(now);
  return delay;
}

} // namespace troupe
