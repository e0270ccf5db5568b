// SPDX-License-Identifier: Apache-2.0
// The answers of a group: those that count, and the reports of the other members.
#pragma once

#include "actors/groups/gather_ledger.hpp"
#include "messages/errors/failure.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

/// The outcome of one question, by member, without the answers.
struct group_report {
  std::string group;              ///< Its name.
  std::vector<std::string> names; ///< The members that were asked.
  std::vector<member_report> members;
  size_t wanted = 0; ///< Answers that are enough.

  [[nodiscard]] size_t count(member_status state) const;

  [[nodiscard]] bool is_enough() const { return count(member_status::counted) >= wanted; }

  /// "group 'jury': 3 answers of 3 wanted; late: juror 3; lost: juror 4 (has ended)".
  [[nodiscard]] std::string summary() const;

  /// The error that there are not enough answers: deadline_exceeded, if a member was late; else
  /// unavailable, if one is lost; else the code of the first one that failed.
  [[nodiscard]] error why_not_enough() const;
};

/// The outcome with the answers. @param Reply The type of a member's answer.
template <class Reply>
struct group_answers : group_report {
  /// By member. The error says why there is none. A late member has an answer only where the
  /// question awaited it.
  std::vector<expected<Reply>> replies;

  /// The answers that count, in the order of members, whichever came first.
  [[nodiscard]] std::vector<Reply> counted() const {
    std::vector<Reply> result;
    for (size_t i = 0; i < members.size(); ++i)
      if (members[i].state == member_status::counted) result.push_back(*replies[i]);
    return result;
  }

  /// As `counted`, if there are enough. Errors: throws `failure` with `why_not_enough`.
  [[nodiscard]] std::vector<Reply> require() const {
    if (!is_enough()) throw failure{why_not_enough()};
    return counted();
  }
};

} // namespace troupe
