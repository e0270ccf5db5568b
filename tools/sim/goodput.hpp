// SPDX-License-Identifier: Apache-2.0
// `troupe sim goodput`: how much of a week is useful work on nodes that fail?
#pragma once

#include "messages/errc.hpp"
#include "simulation/reports/goodput.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The command line of `troupe sim goodput`. Times in seconds, unless a name says otherwise.
struct goodput_command {
  std::vector<int64_t> nodes{100, 1000, 10'000};
  std::vector<int64_t> backups{0, 1, 2, 4, 8};
  double mtbf_hours = 50'000; ///< Mean time between failures of a node.
  double node_return = 3600;
  double detection = 3;
  double restart = 300;
  double checkpoint_cost = 30;
  std::optional<double> checkpoint_every; ///< Nothing: the best.
  std::string run_dir;                    ///< The run of the checkpoints; empty: none.
  double days = 7;
  uint64_t runs = 1000;
  uint64_t seed = 0;
  std::string plots;  ///< Folder for the picture; empty: none.
  std::string json;   ///< File for the report, "-" for standard output; empty: none.
  std::string answer; ///< To be printed instead, if not empty.

  /// The model of so many nodes, and so many backups.
  [[nodiscard]] failure_model model(double needed, uint32_t more) const;
};

/// Reads the command line, and the run that it names. @param arguments `arguments[0]` is "goodput".
/// Errors: invalid_argument, in a line that names the culprit; not_found or malformed, naming the
/// file of the run.
[[nodiscard]] expected<goodput_command> parse_goodput_options(int argument_count,
                                                              const char* const* arguments);

/// A number of nodes with a number of backups.
struct goodput_row {
  failure_model model;
  double stops = 0;     ///< In all days, on average.
  double mean_time = 0; ///< Work until a stop; what follows from it has no meaning without stops.
  double interval = 0;  ///< Work between checkpoints.
  double young = 0;     ///< The best interval by the formulas.
  double daly = 0;
  double useful = 0;                 ///< Share of the time.
  std::optional<double> closed_form; ///< The same by Daly's model, where it holds.

  /// Useful work over all nodes' time, backups included.
  [[nodiscard]] double useful_of_all() const {
    return useful * model.nodes / (model.nodes + model.backups);
  }
};

/// Errors: invalid_argument if so many nodes fail so often in these days that drawing it would take
/// for ever.
[[nodiscard]] expected<void> check_mtbf(double nodes, double mtbf_hours, double days);

/// How many of the command's runs can be drawn of a model before it takes minutes; at least 1.
[[nodiscard]] uint64_t affordable_runs(const goodput_command& command, const failure_model& model);

/// One row. @param interval Nothing: the best.
[[nodiscard]] goodput_row goodput_row_of(const failure_model& model, std::optional<double> interval,
                                         double horizon, uint64_t runs, uint64_t seed);

/// All rows: for each number of nodes, each number of backups.
[[nodiscard]] std::vector<goodput_row> goodput_rows(const goodput_command& command);

/// In words, and as one JSON object.
[[nodiscard]] std::string goodput_text(const goodput_command& command,
                                       const std::vector<goodput_row>& rows);
[[nodiscard]] std::string goodput_json(const goodput_command& command,
                                       const std::vector<goodput_row>& rows);

/// The checkpoints of a run of `troupe train`.
struct recorded_checkpoints {
  double every = 0; ///< Seconds of work between two, on average.
  double cost = 0;  ///< By how much the step after one takes longer than others, in the median.
};

/// Reads config.toml and metrics.csv of the run's folder. Errors: not_found, malformed; and
/// failed_precondition if the run is too short to have a checkpoint with steps behind it.
[[nodiscard]] expected<recorded_checkpoints> read_checkpoints(const std::string& run_dir);

/// Runs the command; `arguments[0]` is "goodput". @returns The exit code of the process.
int goodput_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
