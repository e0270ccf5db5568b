// SPDX-License-Identifier: Apache-2.0
// `troupe sim advise`: finds the best number of backups and policy, and says what they save.
#pragma once

#include "simulation/reports/advice.hpp"
#include "tools/sim/report.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The result of the search.
struct advice_report {
  advice_question question;
  advice found;
  std::vector<sim_row> rows; ///< Everything that was tried under the best policy, for plots.
  /// Replicas of the best that give less than half of their share; ascending.
  std::vector<uint32_t> hardly_heard;

  [[nodiscard]] const advice_candidate& best() const { return found.tried[found.best]; }

  [[nodiscard]] const advice_candidate& baseline() const { return found.tried[found.baseline]; }
};

/// Reads the command line of `troupe sim advise`. Errors: as `parse_sim_options`.
[[nodiscard]] expected<sim_command> parse_advise_options(int argument_count,
                                                         const char* const* arguments);

/// The question of a command line: with --aggregate, how many replicas to buy; else, how many of
/// the replicas are to be backups. Errors: invalid_argument, naming the option.
[[nodiscard]] expected<advice_question> question_of(const sim_command& command);

/// Answers a question by simulation. Errors: throws `failure`, as `advise`; stalled, if no
/// candidate makes its steps.
[[nodiscard]] advice_report advise(const sim_command& command, const advice_question& question);

/// The answer in words, and as one JSON object.
[[nodiscard]] std::string advice_text(const sim_command& command, const advice_report& report);
[[nodiscard]] std::string advice_json(const sim_command& command, const advice_report& report);

/// Runs the command; `arguments[0]` is "advise". @returns The exit code of the process.
int advise_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
