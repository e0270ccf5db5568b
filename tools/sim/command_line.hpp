// SPDX-License-Identifier: Apache-2.0
// Reads the command line of `troupe sim`: options, a scenario file, sweeps.
#pragma once

#include "messages/errors/errc.hpp"
#include "simulation/reports/iteration_curve.hpp"
#include "tools/sim/options.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct other_key;

/// An option that takes several values, with a row of the report for each.
struct sim_sweep {
  std::string key; ///< Its name; empty: there is but one row.
  std::vector<std::string> values;
};

/// The command line, as parsed.
struct sim_command {
  sim_options options;
  sim_sweep sweep;
  sim_sweep across;   ///< A second sweep: rows are a grid, with its values within those of `sweep`.
  std::string ledger; ///< File for a line for each gradient; empty: none.
  std::string steps_csv;            ///< File for a line for each step; empty: none.
  std::string json;                 ///< File for the report, "-" for standard output; empty: none.
  std::string plots;                ///< Folder for pictures and their numbers; empty: none.
  iteration_curve iterations;       ///< Steps that the model needs, by the gradients of each.
  option_origins origins;           ///< Where each value that the user gave comes from.
  std::optional<double> mtbf_hours; ///< A node's mean time between failures; for advise alone.
  std::string answer;               ///< To be printed instead of a simulation, if not empty.

  /// The options of each row, in order; those of `across` change first.
  [[nodiscard]] std::vector<sim_options> rows() const;
};

/// Begins the help of `troupe sim`.
extern const char* const sim_introduction;

/// Ends the help. @param may_stall Whether the exit code says that a simulated job stalled.
[[nodiscard]] std::string sim_exit_codes_text(bool may_stall);

/// Reads the command line, and the scenario that it names; the command line overrides it.
/// @param introduction Begins the help. @param adapt_help Changes the help's options and defaults.
/// Errors: invalid_argument or not_found, in a line that names the culprit.
[[nodiscard]] expected<sim_command>
parse_sim_options(int argument_count, const char* const* arguments,
                  const std::string& introduction = sim_introduction,
                  const std::function<void(command_options&)>& adapt_help = {});

/// Adds the options that a scenario may hold: the simulation's, and those of its report.
/// @param command Gets the values; must outlive `all`.
void add_options(command_options& all, sim_command& command);

/// The key of a scenario that is no option: [[fault]], the planned faults. @param path Begins every
/// error message. @param command Gets the faults; must outlive the key.
[[nodiscard]] other_key faults_key(const std::string& path, sim_command& command);

} // namespace troupe
