// SPDX-License-Identifier: Apache-2.0
// Judging gradients, and closing steps.
#include "actors/policies/gradient_ledger.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace troupe {

bool gradient_ledger::drop_if_late(const origin& from, std::chrono::nanoseconds now) {
  auto repeated = givers_.contains(from.replica);
  auto is_stale = from.local_step < step_ && !asynchronous_;
  if (!is_stale && !repeated) return false;
  // A repeated gradient could only have been used by the next step.
  stale_.push_back({from, now, repeated ? step_ + 1 : step_});
  return true;
}

uint64_t gradient_ledger::accept(const origin& from, std::chrono::nanoseconds now) {
  accepted_.push_back({from, now, step_});
  if (one_per_replica_) givers_.insert(from.replica);
  if (asynchronous_) return asynchronous_->next_step(step_, given());
  return one_per_replica_ ? step_ + 1 : 0;
}

void gradient_ledger::count_missing(uint32_t gradients, uint64_t of_step) {
  if (asynchronous_ && of_step == step_) missing_ += gradients;
}

closed_gradients gradient_ledger::close_step(uint32_t required) {
  TROUPE_ASSERT(given() >= required, required);
  auto count = accepted_.size();
  if (asynchronous_ && required > 0) {
    count = std::min<size_t>(count, required);
    missing_ -= required - count;
  }
  auto end = accepted_.begin() + static_cast<ptrdiff_t>(count);
  std::vector<arrival> later;
  later.reserve(accepted_.size()); // the next step takes about as many
  later.insert(later.end(), end, accepted_.end());
  accepted_.erase(end, accepted_.end());
  closed_gradients closed{std::exchange(accepted_, std::move(later)), std::exchange(stale_, {})};
  for (auto& gradient : closed.accepted)
    gradient.accumulator_step = step_; // it may have come for an earlier step
  givers_.clear();
  if (one_per_replica_)
    for (const auto& gradient : accepted_)
      givers_.insert(gradient.from.replica);
  ++step_;
  return closed;
}

void gradient_ledger::forget() {
  accepted_.clear();
  givers_.clear();
  stale_.clear();
  missing_ = 0;
}

} // namespace troupe
