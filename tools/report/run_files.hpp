// SPDX-License-Identifier: Apache-2.0
// Reads the tables of a run's folder.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/report/run_view.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe {

/// The content of a run's files.
struct run_files {
  run_view view;
  std::string measure;  ///< Column of the evaluations: "bits_per_byte"; empty: none were made.
  bool is_over = false; ///< Whether the run came to its end, and so has written replicas.csv.
  bool is_cut = false;  ///< Whether the last line of the ledger is not whole.
  /// The last step of any file: a ledger at its largest size ends earlier.
  uint64_t last_step = 0;
};

/// Reads ledger.csv, and if they are there metrics.csv, evaluations.csv and notices.csv. A
/// process that was killed may not have written all: the run ends with the last whole step of the
/// ledger.
/// Cost: reads every file once, a block at a time; memory as `run_view`.
/// Errors: not_found, if there is no ledger; malformed, naming file and line; failed_precondition,
/// if no step was made, or the ledger holds none; resource.
[[nodiscard]] expected<run_files> read_run_files(const std::filesystem::path& folder);

} // namespace troupe
