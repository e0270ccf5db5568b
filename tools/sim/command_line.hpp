// SPDX-License-Identifier: Apache-2.0
// What was asked of `troupe sim`: flags, a scenario file, a sweep.
#pragma once

#include "messages/errc.hpp"
#include "simulation/reports/iteration_curve.hpp"
#include "tools/sim/options.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// One option that takes several values, a row of the report for each.
struct sim_sweep {
  const sim_option* option = nullptr; ///< Null: there is but one row.
  std::vector<std::string> values;
};

/// A command line that makes sense.
struct sim_command {
  sim_options options;
  sim_sweep sweep;
  std::string json;               ///< File for the report, "-" for standard output; empty: none.
  std::string plots;              ///< Folder for pictures and what they show; empty: none.
  iteration_curve iterations;     ///< Steps that the model needs, by the gradients of each.
  std::vector<std::string> given; ///< Names of the options that the user gave a value.
  std::string answer;             ///< To be printed instead of a simulation, if not empty.

  /// The options of each row, in order.
  [[nodiscard]] std::vector<sim_options> rows() const;
};

/// Reads the command line, and the scenario that it names; the command line overrides it.
/// Errors: invalid_argument or not_found, in a line that names the culprit.
[[nodiscard]] expected<sim_command> parse_sim_options(int argument_count,
                                                      const char* const* arguments);

/// Reads "aggregate=90:100", "replicas=10:100:10" or "policy=cancel,latest_token": whole numbers
/// from the first to the last, or values with commas between them that are in no parentheses.
/// Errors: invalid_argument.
[[nodiscard]] expected<sim_sweep> parse_sweep(std::string_view text);

/// Sets what a scenario, a TOML file, says. Keys are the options' names, `sweep`, `json`, `plots`
/// and `iterations` among them. @param path Begins every error message. Errors: invalid_argument.
[[nodiscard]] expected<void> read_scenario(std::string_view toml, const std::string& path,
                                           sim_command& command);

} // namespace troupe
