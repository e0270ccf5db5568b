// SPDX-License-Identifier: Apache-2.0
// The results of `troupe sim`, as a table and as JSON, and where they go.
#pragma once

#include "simulation/experiment.hpp"
#include "simulation/reports/run_profile.hpp"
#include "tools/sim/command_line.hpp"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One experiment and its results.
struct sim_row {
  sim_options options;
  troupe::experiment experiment; ///< As the options describe it.
  experiment_report report;
  std::optional<interval_estimate> difference; ///< Step time less that of the first row.
  std::optional<profile_figures> profile;      ///< For plots.
};

/// How long a model takes to its goal.
struct time_to_goal {
  double steps = 0;
  double seconds = 0; ///< Without unit if the curve of iterations has none.
};

/// The time to the goal by the mean step of a row. @pre The row's report `is_whole`.
/// Errors: as `iteration_curve::steps`; limit_exceeded, if no number is as large as the time.
[[nodiscard]] expected<time_to_goal> goal_of(const sim_command& command, const sim_row& row);

/// The restarts of a row's jobs and what they cost, in words. @pre There were some.
[[nodiscard]] std::string restart_text(const experiment_report& report);

/// The values of the swept options in this row, "cancel, 96" in a grid; empty without a sweep.
[[nodiscard]] std::string row_name(const sim_command& command, const sim_row& row);

/// The options of which `row_name` gives the values: "policy, aggregate"; "name" without a sweep.
[[nodiscard]] std::string row_column(const sim_command& command);

/// The draws beyond a trace's times, in words.
[[nodiscard]] std::string trace_text(const trace_use& use, const experiment_report& report);

/// The report as one JSON object: of the row, or with `sweep` and an array `rows` of such. In a
/// grid `sweep` and the `value` of each row are pairs. Times are in seconds; a value that does not
/// exist is null.
[[nodiscard]] std::string sim_json(const sim_command& command, const std::vector<sim_row>& rows);

/// The report as a table, with the options in a line above.
[[nodiscard]] std::string sim_table(const sim_command& command, const std::vector<sim_row>& rows);

/// "45.9 %", without a sign.
[[nodiscard]] std::string percent(double share);

/// Mean and ends of an interval as a JSON object.
[[nodiscard]] nlohmann::ordered_json interval_json(const interval_estimate& interval);

/// A report as indented lines. Numbers that are not finite become null; bytes that are no UTF-8,
/// which the name of a file may hold, become U+FFFD.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& report);

/// The forms of a command's report.
struct report_forms {
  std::function<std::string()> text;
  std::function<std::string()> json;
  std::function<expected<std::string>()> plots; ///< Draws, and gives lines about it.
};

/// Looks, before minutes of simulation, whether a report can be written.
/// @param json_file May be "-", or empty for none. @param plots_folder Made, unless it is there or
/// the name is empty. Errors: resource, naming file or folder.
[[nodiscard]] expected<void> check_outputs(const std::string& json_file,
                                           const std::string& plots_folder = {});

/// Prints the report and draws its plots if there is a folder for them, then writes its JSON to the
/// file. For "-", the JSON goes to standard output instead of the text, and lines about plots to
/// standard error. Errors: resource, naming the file; as `plots`.
[[nodiscard]] expected<void> write_report(const std::string& json_file,
                                          const std::string& plots_folder,
                                          const report_forms& report);

} // namespace troupe
