// SPDX-License-Identifier: Apache-2.0
// The books of a step: joining the reports of its accumulators.
#include "actors/training/step_ledger.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// Steps for which a gradient in the books is remembered, for parts that come late.
constexpr uint32_t late_parts_steps = 8;

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
  for (const auto& part : accepted)
    add(part, false);
  for (const auto& part : stale)
    add(part, true);
}

contribution step_ledger::contribution_of(const arrival& part) {
  auto staleness = part.accumulator_step > part.from.local_step
                     ? part.accumulator_step - part.from.local_step
                     : 0;
  return {.replica = part.from.replica,
          .local_step = part.from.local_step,
          .staleness = staleness,
          .arrived = part.arrived,
          .compute = part.from.compute,
          .waited = part.from.waited,
          .loss = part.from.loss,
          .examples = part.from.examples};
}

// A linear search: a replica has few gradients that are not in the books.
void step_ledger::add(const arrival& part, bool stale) {
  auto replica = part.from.replica;
  if (replica >= latest_.size()) latest_.resize(replica + size_t{1}, nowhere);
  entry added{.iteration = part.from.iteration, .value = contribution_of(part), .stale = stale};
  for (auto at = latest_[replica]; at != nowhere; at = entries_[at].before)
    if (are_one(entries_[at], added)) return join(entries_[at], added);
  added.before = std::exchange(latest_[replica], entries_.size());
  entries_.push_back(added);
}

// A replica that is started again may count its iterations from the first. The local step tells its
// gradients from those of its former life.
bool step_ledger::are_one(const entry& known, const entry& added) {
  return known.iteration == added.iteration
         && (!known.closed || known.value.local_step == added.value.local_step);
}

void step_ledger::join(entry& known, const entry& added) {
  auto staleness = std::max(known.value.staleness, added.value.staleness);
  auto arrived = std::max(known.value.arrived, added.value.arrived);
  known.value = added.value;
  known.value.staleness = staleness;
  known.value.arrived = arrived;
  known.parts += added.parts;
  known.stale |= added.stale;
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

// Where training is asynchronous, an entry is closed only after enough updates that no part can be
// missing any more.
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
  for (const auto& part : accepted)
    record.accepted.push_back(contribution_of(part));
  for (const auto& part : stale)
    record.stale.push_back(contribution_of(part));
  sort_contributions(record);
}

} // namespace troupe
