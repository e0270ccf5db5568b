// SPDX-License-Identifier: Apache-2.0
// Calls of collectives as others see them, and whether two processes mean the same.
#pragma once

#include "actors/collective/collective_plan.hpp"
#include "actors/interfaces/collective_call.hpp"

#include <string>

namespace troupe {

/// The meaning of a process's call in its group. The algorithm is chosen here: never `automatic`.
/// Errors: invalid_argument, limit_exceeded, if the call is wrong by itself.
[[nodiscard]] expected<collective_meaning> meaning_of(const collective_call& call,
                                                      group_place place);

/// "all_reduce 'a' of f32 [3]", and what else differs from another meaning.
[[nodiscard]] std::string describe(const collective_meaning& meaning,
                                   const collective_meaning& other);

/// The error for two participants that do not make the same call.
[[nodiscard]] error disagreement(const std::string& caller, const collective_meaning& means,
                                 const std::string& other, const collective_meaning& other_means);

/// The length of the segments that a long array is cut into. Unit: bytes.
[[nodiscard]] uint64_t segment_bytes(collective_algorithm algorithm, uint32_t processes);

/// The steps of a process for a call. @pre The meaning is `meaning_of` a call in this group.
[[nodiscard]] collective_plan plan_of(const collective_meaning& meaning, group_place place);

} // namespace troupe
