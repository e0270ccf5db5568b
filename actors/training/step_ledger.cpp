// SPDX-License-Identifier: Apache-2.0
// Joining the reports of a step's accumulators.
#include "actors/training/step_ledger.hpp"

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

// A report is sorted once and merged: a search for each gradient would cost more.
void step_ledger::add(const msg<wire::TakenGradient>& report) {
  if (!report.reader().getAmends()) {
    TROUPE_ASSERT(missing_ > 0);
    --missing_;
  }
  auto known = static_cast<ptrdiff_t>(entries_.size());
  for (auto arrival : report.reader().getAccepted())
    entries_.push_back(entry_of(arrival, false));
  for (auto arrival : report.reader().getStale())
    entries_.push_back(entry_of(arrival, true));
  auto by_id = [](const entry& left, const entry& right) { return left.id < right.id; };
  std::stable_sort(entries_.begin() + known, entries_.end(), by_id);
  std::inplace_merge(entries_.begin(), entries_.begin() + known, entries_.end(), by_id);
  join_equals();
}

step_ledger::entry step_ledger::entry_of(wire::Arrival::Reader arrival, bool stale) {
  auto came = read_arrival(arrival);
  auto lag = came.accumulator_step > came.from.local_step
               ? came.accumulator_step - came.from.local_step
               : 0;
  return {.id = {came.from.replica, came.from.iteration},
          .value = {.replica = came.from.replica,
                    .local_step = came.from.local_step,
                    .lag = lag,
                    .arrived = came.arrived,
                    .compute = came.from.compute,
                    .waited = came.from.waited,
                    .loss = came.from.loss,
                    .examples = came.from.examples},
          .stale = stale};
}

void step_ledger::join(entry& known, const entry& another) {
  auto lag = std::max(known.value.lag, another.value.lag);
  auto arrived = std::max(known.value.arrived, another.value.arrived);
  known.value = another.value;
  known.value.lag = lag;
  known.value.arrived = arrived;
  known.parts += another.parts;
  known.stale |= another.stale;
}

void step_ledger::join_equals() {
  if (entries_.empty()) return;
  auto last = entries_.begin();
  for (auto next = std::next(last); next != entries_.end(); ++next) {
    if (last->id == next->id)
      join(*last, *next);
    else if (++last != next)
      *last = *next;
  }
  entries_.erase(std::next(last), entries_.end());
}

job_time step_ledger::last_arrival() const {
  job_time last{0};
  for (const auto& entry : entries_)
    if (!entry.stale) last = std::max(last, entry.value.arrived);
  return last;
}

bool step_ledger::is_due(size_t waiting) {
  auto& entry = entries_[waiting];
  if (!patience_) return entry.waits++ > 0;
  auto next = waiting + 1;
  auto is_followed = next < entries_.size() && entries_[next].id.first == entry.id.first;
  return is_followed && entry.waits++ >= *patience_;
}

void step_ledger::close(step_record& record) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    auto& entry = entries_[i];
    entry.closed = entry.parts >= variables_ || is_due(i);
    if (entry.closed) (entry.stale ? record.stale : record.accepted).push_back(entry.value);
  }
  std::erase_if(entries_, [](const entry& one) { return one.closed; });
  std::sort(record.accepted.begin(), record.accepted.end(), earlier);
  std::sort(record.stale.begin(), record.stale.end(), earlier);
  missing_ = variables_;
}

} // namespace troupe
