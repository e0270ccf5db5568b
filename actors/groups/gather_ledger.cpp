// SPDX-License-Identifier: Apache-2.0
// Settling the members of a question, and counting answers.
#include "actors/groups/gather_ledger.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/assert.hpp"

#include <fmt/format.h>
#include <utility>

namespace troupe {

const char* to_string(member_status state) {
  constexpr const char* names[] = {"asked", "counted", "late", "failed", "lost"};
  return names[static_cast<size_t>(state)];
}

gather_ledger::gather_ledger(size_t members, size_t wanted, bool awaits_late, job_time asked_at)
  : members_(members), wanted_(wanted), awaits_late_(awaits_late), asked_at_(asked_at),
    open_(members) {
  TROUPE_ASSERT(wanted > 0 && wanted <= members);
}

bool gather_ledger::answer(size_t member, job_time now) {
  auto& report = members_[member];
  if (report.state != member_status::asked) return false;
  report = {.state = is_enough() ? member_status::late : member_status::counted,
            .took = now - asked_at_,
            .has_answer = true};
  if (report.state == member_status::counted) ++counted_;
  --open_;
  return true;
}

bool gather_ledger::fail(size_t member, member_status status, error why, job_time now) {
  auto& report = members_[member];
  if (report.state != member_status::asked) return false;
  report = {.state = status, .why = std::move(why), .took = now - asked_at_};
  --open_;
  return true;
}

void gather_ledger::end(job_time now) {
  auto why = is_enough()
               ? error{errc::cancelled, "there were enough answers without it"}
               : error{errc::deadline_exceeded,
                       fmt::format("has not answered in {:.1f} s", seconds(now - asked_at_))};
  for (size_t member = 0; member < members_.size(); ++member)
    fail(member, member_status::late, why, now);
}

bool gather_ledger::is_over() const {
  return open_ == 0 || (is_enough() && !awaits_late_);
}

} // namespace troupe
