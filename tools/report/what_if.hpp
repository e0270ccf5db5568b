// SPDX-License-Identifier: Apache-2.0
// Estimates how long a step of a run would take with one thing changed.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/replay/changed_run.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One change, and the result of its replay, as by `troupe sim replay`.
struct what_if_answer {
  std::string change; ///< In words: "repair replica 3".
  std::string option; ///< As `troupe sim replay` takes it: "--repair 3".
  uint32_t needed = 0;
  double mean_step_seconds = 0;
  std::optional<interval_estimate> prediction; ///< Interval for the mean step of another run.
  bool is_lower_bound = false;
  std::string stalled; ///< Why it would make no further step; empty if it would.
};

/// The answers of a run.
struct what_if_table {
  uint64_t first_step = 0; ///< Steps that were replayed, both ends included.
  uint64_t last_step = 0;
  double mean_step_seconds = 0; ///< As recorded.
  uint32_t needed = 0;
  std::vector<what_if_answer> answers;
  std::string why_none; ///< Empty if there are answers.
};

/// The most bytes at the end of a ledger that are replayed: enough for some ten thousand gradients,
/// and few enough that a run ends a second or two later.
constexpr uint64_t what_if_bytes_max = uint64_t{2} << 20;

/// The end of a ledger as a ledger of its own: the header, and whole steps.
/// Errors: not_found, resource.
[[nodiscard]] expected<std::string> ledger_end(const std::filesystem::path& ledger,
                                               uint64_t bytes_max);

/// Changes worth a replay: all gradients needed, one more or one less, other policies, repaired
/// replicas that are slow. @param slow The slowest first.
[[nodiscard]] std::vector<replay_change> changes_worth_asking(const job_options& options,
                                                              const std::vector<uint32_t>& slow);

/// Replays the end of a run's ledger with each of the changes.
/// @param is_wanted Asked before each replay, by several threads; false: the answers so far are
/// enough.
/// Errors: none; `why_none` says why it cannot be replayed.
[[nodiscard]] what_if_table what_if(const std::filesystem::path& folder, const job_options& options,
                                    const std::vector<uint32_t>& slow,
                                    const std::function<bool()>& is_wanted = {});

} // namespace troupe
