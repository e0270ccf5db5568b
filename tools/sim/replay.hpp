// SPDX-License-Identifier: Apache-2.0
// `troupe sim replay RUN_DIR`: what would that run have taken with one thing changed?
#pragma once

#include "messages/errc.hpp"
#include "simulation/replay/replay.hpp"
#include "tools/options/job_options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What was asked.
struct replay_command {
  std::string run_dir;
  std::optional<uint64_t> replicas; ///< Nothing, here and below: as the run was.
  std::optional<uint64_t> aggregate;
  std::optional<sync_policy> policy;
  std::vector<uint32_t> repaired;
  std::string json;   ///< File for the report, "-" for standard output; empty: none.
  std::string answer; ///< To be printed instead, if not empty.

  /// Whether anything is to differ from the run.
  [[nodiscard]] bool has_change() const {
    return replicas || aggregate || policy || !repaired.empty();
  }
};

/// The options that ask for the change: "--aggregate 3 --repair 2,7".
[[nodiscard]] std::string option_text(const replay_command& command);

/// Reads the command line. @param arguments `arguments[0]` is "replay".
/// Errors: invalid_argument, in a line that names the culprit.
[[nodiscard]] expected<replay_command> parse_replay_options(int argument_count,
                                                            const char* const* arguments);

/// A run as its folder tells of it.
struct run_folder {
  recorded_run run;
  sync_options sync;
  uint64_t seed = 0;
};

/// Reads the config.toml of a run. Errors: not_found, invalid_argument.
[[nodiscard]] expected<job_options> read_run_options(const std::string& path);

/// A run with these options and this ledger. @param name Of the ledger; begins error messages.
/// Errors: malformed, if the ledger tells of more replicas; failed_precondition, if the number of
/// backups was chosen anew for every step; as `read_ledger`.
[[nodiscard]] expected<run_folder> run_of(const job_options& options, std::string_view ledger,
                                          const std::string& name);

/// Reads config.toml and ledger.csv. Errors: as `read_run_options` and `run_of`.
[[nodiscard]] expected<run_folder> read_run_folder(const std::string& path);

/// Steps of one replay.
struct replayed_steps {
  std::vector<double> seconds;
  double drop_fraction = 0;
  double wasted_replica_seconds = 0;
  std::optional<stall_report> stalled;
};

/// What came of it.
struct replay_report {
  sync_options recorded_sync;
  sync_options changed_sync;
  std::vector<double> recorded; ///< Seconds of each step.
  replayed_steps unchanged;
  replay_error error;
  double halves = 0; ///< Mean step of the second half less that of the first, over that of all.
  std::optional<replayed_steps> changed;
  /// The mean step time of another run with the change; nothing if there are too few steps, or if
  /// what is replayed is a lower bound.
  std::optional<interval_estimate> prediction;
  /// The mean step time if no cut computation took longer than the longest completed one; nothing
  /// if none is drawn longer.
  std::optional<double> at_least;
  cut_estimate cut; ///< Of the changed replay, without repaired replicas.
  /// A step waits for replicas of which the run does not say how long they take.
  bool is_lower_bound = false;
};

/// Replays the run as it was, and with the change if there is one.
/// Errors: throws `failure`, as `replay_of` and `sync_options::validate`.
[[nodiscard]] replay_report replay(const run_folder& folder, const replay_command& command);

/// In words, and as one JSON object.
[[nodiscard]] std::string replay_text(const replay_command& command, const run_folder& folder,
                                      const replay_report& report);
[[nodiscard]] std::string replay_json(const replay_command& command, const replay_report& report);

/// Runs the command; `arguments[0]` is "replay". @returns The exit code of the process.
int replay_command_main(int argument_count, const char* const* arguments);

} // namespace troupe
