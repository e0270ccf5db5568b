// SPDX-License-Identifier: Apache-2.0
// The outcome of a question in words, and as an error.
#include "actors/groups/group_answers.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

constexpr size_t members_named_max = 3;

// "; lost: juror 4 (has ended), juror 5 (has ended) and 7 more"
std::string members_in(const group_report& report, member_status state, bool with_reasons) {
  auto count = report.count(state);
  if (count == 0) return {};
  auto result = fmt::format("; {}: ", to_string(state));
  size_t named = 0;
  for (size_t i = 0; i < report.members.size() && named < members_named_max; ++i) {
    const auto& member = report.members[i];
    if (member.state != state) continue;
    result += (named++ == 0 ? "" : ", ") + report.names[i];
    if (with_reasons) result += " (" + member.why.message + ")";
  }
  if (count > named) result += fmt::format(" and {} more", count - named);
  return result;
}

} // namespace

size_t group_report::count(member_status state) const {
  return static_cast<size_t>(std::ranges::count(members, state, &member_report::state));
}

std::string group_report::summary() const {
  auto result = fmt::format("group '{}': {} answers of {} wanted", group,
                            count(member_status::counted), wanted);
  result += members_in(*this, member_status::late, !is_enough());
  result += members_in(*this, member_status::failed, true);
  return result + members_in(*this, member_status::lost, true);
}

error group_report::why_not_enough() const {
  auto failed = std::ranges::find(members, member_status::failed, &member_report::state);
  auto code = errc::unavailable;
  if (count(member_status::late) > 0)
    code = errc::deadline_exceeded;
  else if (count(member_status::lost) == 0 && failed != members.end())
    code = failed->why.code;
  return {code, summary(), failed == members.end() ? "" : failed->why.throw_site};
}

} // namespace troupe
