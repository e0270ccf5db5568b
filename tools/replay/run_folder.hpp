// SPDX-License-Identifier: Apache-2.0
// A run, read from its folder to be replayed.
#pragma once

#include "messages/errors/errc.hpp"
#include "simulation/replay/recorded_run.hpp"
#include "tools/options/job_options.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// A run, as config.toml and ledger.csv describe it.
struct run_folder {
  std::string ledger; ///< Path of the ledger, for error messages.
  recorded_run run;
  sync_options sync;
  uint64_t seed = 0;
};

/// Reads the config.toml of a run. Errors: not_found, invalid_argument.
[[nodiscard]] expected<job_options> read_run_options(const std::string& path);

/// The run with these options and this ledger. @param name The ledger's; begins error messages.
/// Errors: malformed, if the ledger has more replicas than the options; failed_precondition, if the
/// number of backups was chosen anew for every step; as `read_ledger`.
[[nodiscard]] expected<run_folder> run_of(const job_options& options, std::string_view ledger,
                                          const std::string& name);

/// Reads config.toml and ledger.csv. Errors: as `read_run_options` and `run_of`.
[[nodiscard]] expected<run_folder> read_run_folder(const std::string& path);

} // namespace troupe
