// SPDX-License-Identifier: Apache-2.0
// The chief's decisions about a step, without actors: how many gradients it waits for, which
// replicas are told to stop, and why it cannot end.
#pragma once

#include "actors/policies/backup_choice.hpp"
#include "actors/policies/sync_options.hpp"
#include "actors/recording/records.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The fewest replicas with which every step can end: as many as it needs gradients, or 1 where one
/// may give several, or where a step needs no more than there are.
[[nodiscard]] uint32_t fewest_replicas(const sync_options& sync);

/// Whether a job may begin, and go on, with that many of its replicas.
/// Errors: invalid_argument, naming the culprit: more replicas than there are, fewer than a step
/// needs, or a policy under which none may come late.
[[nodiscard]] expected<void> check_min_replicas(uint32_t min_replicas, const sync_options& sync);

/// The replicas of a job before a step begins.
struct replicas_present {
  /// The live ones, and those that are to come for the first time; ascending.
  std::vector<uint32_t> expected;
  uint32_t left = 0; ///< These, and lost ones that are expected back.
};

/// How many gradients the next step waits for, where that is chosen anew for every step.
/// @param usual The number in the options, for a step before which no other is known.
[[nodiscard]] uint32_t choose_needed(const backup_choice& choice, uint32_t usual,
                                     const replicas_present& replicas, job_time now);

/// The live replicas that are told to stop because the step has ended without them.
/// @param step Its accepted gradients are known. @param live Ascending.
/// @returns One line for each of them.
[[nodiscard]] std::vector<contribution> cancelled_by(const step_record& step,
                                                     std::span<const uint32_t> live);

/// A step that cannot end.
struct stalled_step {
  uint64_t step = 0;     ///< Counted from 1.
  uint32_t needed = 0;   ///< Gradients that it needs.
  uint32_t live = 0;     ///< Replicas that are there; none of them can end the step.
  uint32_t replicas = 0; ///< Replicas of the job, there or not.
  uint32_t tokens = 0;   ///< Tokens that are left.
  /// Names of the variables that lack gradients while others have enough.
  std::vector<std::string> lacking{};
};

/// The error that reports a stalled step, with the code `stalled`.
[[nodiscard]] error to_error(const stalled_step& stalled);

} // namespace troupe
