// SPDX-License-Identifier: Apache-2.0
// `troupe sim goodput`: computes how much of a job's time is useful work on nodes that fail.
#pragma once

#include "messages/errors/errc.hpp"
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

  /// The model of a job that needs so many nodes, with so many backups.
  [[nodiscard]] failure_model model(double needed, uint32_t backup_count) const;
};

/// The figures of a number of nodes with a number of backups.
struct goodput_row {
  failure_model model;
  double stops = 0;     ///< In all days, on average.
  double mean_time = 0; ///< Work until a stop; no meaning without stops, as `young` and `daly`.
  double interval = 0;  ///< Work between checkpoints.
  double young = 0;     ///< The best interval by Young's formula.
  double daly = 0;      ///< By Daly's.
  double useful = 0;    ///< Share of the time.
  std::optional<double> closed_form; ///< The same by Daly's model, where it holds.

  /// Useful work over all nodes' time, backups included.
  [[nodiscard]] double useful_of_all() const {
    return useful * model.nodes / (model.nodes + model.backups);
  }
};

/// Errors: invalid_argument if nodes fail so often that drawing the failures would take for ever.
[[nodiscard]] expected<void> check_mtbf(double nodes, double mtbf_hours, double days);

/// The command's runs, or as many of them as can be drawn in less than minutes; at least 1.
[[nodiscard]] uint64_t affordable_runs(const goodput_command& command, const failure_model& model);

/// Draws runs of a model. @param interval Work between checkpoints; nothing: the best.
[[nodiscard]] goodput_row goodput_row_of(const failure_model& model, std::optional<double> interval,
                                         double horizon, uint64_t runs, uint64_t seed);

/// All rows: for each number of nodes, each number of backups.
[[nodiscard]] std::vector<goodput_row> goodput_rows(const goodput_command& command);

/// Runs the command; `arguments[0]` is "goodput". @returns The exit code of the process.
int goodput_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
