// SPDX-License-Identifier: Apache-2.0
// The queues of all streams of a device, in one table.
#include "actors/gpu/device_ledger.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::map<uint64_t, device_ledger::work>::iterator device_ledger::first_of(uint32_t stream) {
  return std::ranges::find_if(works_,
                              [&](const auto& entry) { return entry.second.stream == stream; });
}

uint64_t device_ledger::add(uint32_t stream, std::string purpose, job_time timeout, job_time now) {
  TROUPE_ASSERT(timeout > job_time{0});
  work added{.stream = stream, .purpose = std::move(purpose), .timeout = timeout};
  if (first_of(stream) == works_.end()) added.since = now;
  works_.emplace(++tickets_, std::move(added));
  return tickets_;
}

std::vector<uint64_t> device_ledger::begin_waiting(uint32_t stream) {
  std::vector<uint64_t> tickets;
  for (auto& [ticket, work] : works_) {
    if (work.stream != stream || work.at == phase::running) continue;
    if (work.at == phase::launching) return {}; // it came before all that waits
    work.at = phase::launching;
    tickets.push_back(ticket);
  }
  return tickets;
}

void device_ledger::launched(uint64_t ticket) {
  if (auto found = works_.find(ticket); found != works_.end()) found->second.at = phase::running;
}

void device_ledger::complete(uint64_t ticket, job_time now) {
  auto found = works_.find(ticket);
  if (found == works_.end()) return;
  auto stream = found->second.stream;
  works_.erase(found);
  if (auto first = first_of(stream); first != works_.end() && !first->second.since)
    first->second.since = now;
}

std::optional<device_ledger::overdue_work> device_ledger::overdue(job_time now) const {
  for (const auto& [ticket, work] : works_)
    if (work.since && now - *work.since >= work.timeout)
      return overdue_work{work.purpose, work.timeout};
  return std::nullopt;
}

std::optional<job_time> device_ledger::next_due() const {
  std::optional<job_time> due;
  for (const auto& [ticket, work] : works_)
    if (work.since) due = std::min(due.value_or(job_time::max()), *work.since + work.timeout);
  return due;
}

} // namespace troupe
