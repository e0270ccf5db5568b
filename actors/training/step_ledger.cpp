// SPDX-License-Identifier: Apache-2.0
// Joining the reports of a step's accumulators.
#include "actors/training/step_ledger.hpp"

#include "messages/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

constexpr uint32_t late_parts_steps = 8; // that a gradient in the books is remembered

// By arrival; equal times by replica, so that a simulated ledger does not depend on anything else.
bool earlier(const contribution& left, const contribution& right) {
  return std::pair{left.arrived, left.replica} < std::pair{right.arrived, right.replica};
}

void sort_contributions(step_record& record) {
  for (auto* gradients : {&record.accepted, &record.stale})
    if (!std::is_sorted(gradients->begin(), gradients->end(), earlier))
      std::stable_sort(gradients->begin(), gradients->end(), earlier);
}

} // namespace

void step_ledger::add(std::span<const arrival> accepted, std::span<const arrival> stale,
                      bool amends) {
  if (!amends) {
    TROUPE_ASSERT(missing_ > 0);
    --missing_;
  }
  for (const auto& came : accepted)
    add(came, false);
  for (const auto& came : stale)
    add(came, true);
}

contribution step_ledger::contribution_of(const arrival& came) {
  auto staleness = came.accumulator_step > came.from.local_step
                     ? came.accumulator_step - came.from.local_step
                     : 0;
  return {.replica = came.from.replica,
          .local_step = came.from.local_step,
          .staleness = staleness,
          .arrived = came.arrived,
          .compute = came.from.compute,
          .waited = came.from.waited,
          .loss = came.from.loss,
          .examples = came.from.examples};
}

// A replica has few gradients that are not in the books.
void step_ledger::add(const arrival& came, bool stale) {
  auto replica = came.from.replica;
  if (replica >= latest_.size()) latest_.resize(replica + size_t{1}, nowhere);
  entry added{.iteration = came.from.iteration, .value = contribution_of(came), .stale = stale};
  for (auto at = latest_[replica]; at != nowhere; at = entries_[at].before)
    if (are_one(entries_[at], added)) return join(entries_[at], added);
  added.before = std::exchange(latest_[replica], entries_.size());
  entries_.push_back(added);
}

// A replica that is started again may count its iterations from the first, but it goes on with the
// job's step.
bool step_ledger::are_one(const entry& known, const entry& another) {
  return known.iteration == another.iteration
         && (!known.closed || known.value.local_step == another.value.local_step);
}

void step_ledger::join(entry& known, const entry& another) {
  auto staleness = std::max(known.value.staleness, another.value.staleness);
  auto arrived = std::max(known.value.arrived, another.value.arrived);
  known.value = another.value;
  known.value.staleness = staleness;
  known.value.arrived = arrived;
  known.parts += another.parts;
  known.stale |= another.stale;
}

job_time step_ledger::last_arrival() const {
  job_time last{0};
  for (const auto& entry : entries_)
    if (!entry.stale && !entry.closed) last = std::max(last, entry.value.arrived);
  return last;
}

bool step_ledger::is_due(entry& waiting) const {
  if (!updates_awaited_) return waiting.waits++ > 0;
  auto is_followed = false;
  for (auto at = latest_[waiting.value.replica]; at != nowhere; at = entries_[at].before)
    is_followed |= entries_[at].iteration > waiting.iteration;
  return is_followed && waiting.waits++ >= *updates_awaited_;
}

// Where training is asynchronous, waiting for updates has seen to it that no part is missing any
// more.
bool step_ledger::is_forgotten(const entry& one) const {
  return one.closed
         && (updates_awaited_ || one.parts >= variables_ || one.waits >= late_parts_steps);
}

void step_ledger::close(step_record& record) {
  for (auto& entry : entries_) {
    if (entry.closed) {
      ++entry.waits;
      continue;
    }
    entry.closed = entry.parts >= variables_ || is_due(entry);
    if (!entry.closed) continue;
    entry.waits = 0;
    (entry.stale ? record.stale : record.accepted).push_back(entry.value);
  }
  for (const auto& entry : entries_)
    latest_[entry.value.replica] = nowhere;
  std::erase_if(entries_, [this](const entry& one) { return is_forgotten(one); });
  for (place at = 0; at < entries_.size(); ++at)
    entries_[at].before = std::exchange(latest_[entries_[at].value.replica], at);
  sort_contributions(record);
  missing_ = variables_;
}

void step_ledger::close_only(step_record& record, std::span<const arrival> accepted,
                             std::span<const arrival> stale) {
  for (const auto& came : accepted)
    record.accepted.push_back(contribution_of(came));
  for (const auto& came : stale)
    record.stale.push_back(contribution_of(came));
  sort_contributions(record);
}

} // namespace troupe
