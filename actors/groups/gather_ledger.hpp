// SPDX-License-Identifier: Apache-2.0
// Counts the answers to a question of a group, and says when it is over.
#pragma once

#include "actors/recording/records.hpp"
#include "messages/errors/errc.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe {

/// The outcome of a question to one member.
enum class member_status : uint8_t {
  asked,   ///< It has not answered yet.
  counted, ///< Its answer is one of the first ones, of which there are enough.
  late,    ///< There were enough without it, or its time was over.
  failed,  ///< It has answered with an error.
  lost,    ///< It ended, or its process did.
};

/// "asked", "counted", "late", "failed" or "lost".
[[nodiscard]] const char* to_string(member_status state);

/// One member's answer, or why there is none.
struct member_report {
  member_status state = member_status::asked;
  error why{};      ///< Why it has no answer; none where it has one.
  job_time took{0}; ///< From the question to its answer, or to the end of the question.
  bool has_answer = false;
};

/// One question to several members: the first answers count until there are enough. A member is
/// settled once; a later answer changes nothing.
class gather_ledger {
public:
  /// @param wanted Answers that are enough. @param awaits_late Whether the question goes on when
  /// there are enough, until every member is settled. @pre 0 < wanted <= members
  gather_ledger(size_t members, size_t wanted, bool awaits_late, job_time asked_at);

  /// A member has answered. @returns False if it was settled before.
  bool answer(size_t member, job_time now);

  /// A member will not answer. @returns False if it was settled before.
  bool fail(size_t member, member_status status, error why, job_time now);

  /// The time for the question is over: every member without an answer is late.
  void end(job_time now);

  /// Whether no answer is waited for any more.
  [[nodiscard]] bool is_over() const;

  [[nodiscard]] bool is_enough() const { return counted_ >= wanted_; }

  [[nodiscard]] const std::vector<member_report>& members() const { return members_; }

private:
  std::vector<member_report> members_;
  size_t wanted_;
  bool awaits_late_;
  job_time asked_at_;
  size_t counted_ = 0;
  size_t open_;
};

} // namespace troupe
