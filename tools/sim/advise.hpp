// SPDX-License-Identifier: Apache-2.0
// `troupe sim advise`: how many backups, under which policy, and what that saves, in words.
#pragma once

#include "simulation/reports/advice.hpp"
#include "tools/sim/report.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The result of the search.
struct advice_report {
  advice_question question;
  advice found;
  std::vector<sim_row> rows; ///< Everything that was tried under the best policy, for plots.
  uint32_t hardly_heard = 0; ///< Replicas of the best that give less than half of their share.
};

/// The synchronous policies, those without left-over tokens first; advise tries all of them unless
/// --policy names one.
[[nodiscard]] std::vector<sync_policy> policies_with_backups();

/// Reads the command line of `troupe sim advise`. Errors: as `parse_sim_options`.
[[nodiscard]] expected<sim_command> parse_advise_options(int argument_count,
                                                         const char* const* arguments);

/// The question that options ask: with --aggregate, how many replicas to buy; else, how many of the
/// replicas are to be backups. Errors: invalid_argument, naming the option.
[[nodiscard]] expected<advice_question> question_of(const sim_command& command);

/// Answers it. Errors: throws `failure`, as `advise`; stalled, if nothing makes its steps.
[[nodiscard]] advice_report advise(const sim_command& command, const advice_question& question);

/// In words, and as one JSON object.
[[nodiscard]] std::string advice_text(const sim_command& command, const advice_report& report);
[[nodiscard]] std::string advice_json(const sim_command& command, const advice_report& report);

/// Runs the command; `arguments[0]` is "advise". @returns The exit code of the process.
int advise_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
