// SPDX-License-Identifier: Apache-2.0
// The findings of `troupe sim`, for people and for programs.
#pragma once

#include "simulation/experiment.hpp"
#include "simulation/reports/run_profile.hpp"
#include "tools/sim/command_line.hpp"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One experiment and what came of it.
struct sim_row {
  sim_options options;
  experiment what;
  experiment_report report;
  std::optional<interval_estimate> difference; ///< Step time less that of the first row.
  std::optional<profile_figures> profile;      ///< For plots.
};

/// The values that tell this row from the others, "cancel, 96" in a grid; empty if there is but
/// one.
[[nodiscard]] std::string row_name(const sim_command& command, const sim_row& row);

/// The options of which `row_name` gives the values: "policy, aggregate"; "name" if there is but
/// one row.
[[nodiscard]] std::string row_column(const sim_command& command);

/// The draws beyond a trace's times, in words.
[[nodiscard]] std::string trace_text(const trace_use& use, const experiment_report& report);

/// The report as one JSON object: of the row, or with `sweep` and an array `rows` of such. In a
/// grid `sweep` and the `value` of each row are pairs. Times are in seconds; what does not exist is
/// null.
[[nodiscard]] std::string sim_json(const sim_command& command, const std::vector<sim_row>& rows);

/// A report as indented lines. Bytes that are no UTF-8, which the name of a file may hold, become
/// U+FFFD.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& report);

/// Looks, before minutes of simulation, whether a report can be written to the file; it may be "-",
/// or empty for none. Errors: resource, naming the file.
[[nodiscard]] expected<void> check_json(const std::string& file);

/// Writes a report to the file, or to the standard output if that is "-".
/// Errors: resource, naming the file.
[[nodiscard]] expected<void> write_json(const std::string& file, const std::string& report);

/// The report as a table, with a line above that says what was simulated.
[[nodiscard]] std::string sim_table(const sim_command& command, const std::vector<sim_row>& rows);

} // namespace troupe
