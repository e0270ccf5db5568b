// SPDX-License-Identifier: Apache-2.0
// Joining the reports of a step's accumulators.
#include "actors/step_ledger.hpp"

#include "messages/assert.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe {

namespace {

// By arrival; equal times by replica, so that a simulated ledger does not depend on anything else.
bool earlier(const contribution& left, const contribution& right) {
  return std::pair{left.arrived, left.replica} < std::pair{right.arrived, right.replica};
}

} // namespace

void step_ledger::add(const msg<wire::TakenGradient>& report) {
  if (!report.reader().getAmends()) {
    TROUPE_ASSERT(missing_ > 0);
    --missing_;
  }
  for (auto arrival : report.reader().getAccepted())
    add(arrival, false);
  for (auto arrival : report.reader().getStale())
    add(arrival, true);
}

void step_ledger::add(wire::Arrival::Reader arrival, bool stale) {
  auto came = read_arrival(arrival);
  auto& entry = entries_[{came.from.replica, came.from.iteration}];
  auto& value = entry.value;
  ++entry.parts;
  entry.stale |= stale;
  auto lag = came.accumulator_step > came.from.local_step
               ? came.accumulator_step - came.from.local_step
               : 0;
  value = {.replica = came.from.replica,
           .local_step = came.from.local_step,
           .lag = std::max(value.lag, lag),
           .arrived = std::max(value.arrived, came.arrived),
           .compute = came.from.compute,
           .waited = came.from.waited,
           .loss = came.from.loss,
           .examples = came.from.examples};
}

job_time step_ledger::last_arrival() const {
  job_time last{0};
  for (const auto& [id, entry] : entries_)
    if (!entry.stale) last = std::max(last, entry.value.arrived);
  return last;
}

bool step_ledger::is_due(entry_map::iterator waiting) {
  if (!patience_) return waiting->second.waits++ > 0;
  auto next = std::next(waiting);
  auto is_followed = next != entries_.end() && next->first.first == waiting->first.first;
  return is_followed && waiting->second.waits++ >= *patience_;
}

void step_ledger::close(step_record& record) {
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    auto& entry = at->second;
    entry.closed = entry.parts >= variables_ || is_due(at);
    if (entry.closed) (entry.stale ? record.stale : record.accepted).push_back(entry.value);
  }
  std::erase_if(entries_, [](const auto& item) { return item.second.closed; });
  std::sort(record.accepted.begin(), record.accepted.end(), earlier);
  std::sort(record.stale.begin(), record.stale.end(), earlier);
  missing_ = variables_;
}

} // namespace troupe
