// SPDX-License-Identifier: Apache-2.0
// Makes the folder of a run, and names the files in it.
#pragma once

#include "messages/errors/errc.hpp"

#include <chrono>
#include <filesystem>
#include <string_view>
#include <utility>

namespace troupe {

/// Each run has a folder with fixed names inside, so that scripts and people find its files. A
/// folder that holds anything is refused, so that no results are overwritten by mistake.
class run_directory {
public:
  /// Whether `create` would work, without writing anything.
  /// Errors: `failed_precondition` if the folder holds something or is a file, `invalid_argument`
  /// if it may not be written, or a link to nothing lies there or on the way; the line names
  /// --run-dir.
  [[nodiscard]] static expected<void> check(const std::filesystem::path& path);

  /// Whether `config` can be read back: TOML is UTF-8, which the name of a file need not be.
  /// Errors: `invalid_argument`, naming the option of the first line that is not.
  [[nodiscard]] static expected<void> check_config(std::string_view config);

  /// Makes the folder and writes `config` into it as config.toml. If several runs do so at once,
  /// one of them gets the folder, and the others are refused as if it had been there before. A call
  /// that fails removes the folders that it made, unless others have put something into them.
  /// Errors: as `check` and `check_config`; `resource` if the disk fails.
  [[nodiscard]] static expected<run_directory> create(const std::filesystem::path& path,
                                                      std::string_view config);

  /// Makes a new folder under `base`, named after the time (UTC), as in 2026-11-21-020641; a second
  /// run of the same second gets a "-2" after it. Errors: as `create`.
  [[nodiscard]] static expected<run_directory>
  create_dated(const std::filesystem::path& base, std::chrono::system_clock::time_point now,
               std::string_view config);

  /// Names the files in a folder, which need not exist.
  [[nodiscard]] static run_directory at(std::filesystem::path path) {
    return run_directory{std::move(path)};
  }

  /// Removes all files of a run that never began, and the folder if `create` made it.
  void take_back() const;

  /// The folder itself.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// The options of the run, for --config.
  [[nodiscard]] std::filesystem::path config() const { return path_ / "config.toml"; }

  /// A line per step.
  [[nodiscard]] std::filesystem::path metrics() const { return path_ / "metrics.csv"; }

  /// A line per evaluation.
  [[nodiscard]] std::filesystem::path evaluations() const { return path_ / "evaluations.csv"; }

  /// A line per notice: a line that the run printed beside its progress.
  [[nodiscard]] std::filesystem::path notices() const { return path_ / "notices.csv"; }

  /// A line per gradient.
  [[nodiscard]] std::filesystem::path ledger() const { return path_ / "ledger.csv"; }

  /// A line per replica, once the run is over.
  [[nodiscard]] std::filesystem::path replicas() const { return path_ / "replicas.csv"; }

  /// The last messages of every actor, if asked for or if something went wrong.
  [[nodiscard]] std::filesystem::path flight() const { return path_ / "flight.txt"; }

  /// The activity of every actor over time, in Chrome's trace format.
  [[nodiscard]] std::filesystem::path timeline() const { return path_ / "timeline.json"; }

  /// Where checkpoints lie in the folder of a run.
  static constexpr const char* checkpoint_folder = "checkpoints";

  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / checkpoint_folder; }

  /// Where an evaluator beside the run writes an evaluations.csv and its curve.
  static constexpr const char* evaluator_folder = "eval";

  /// Whether a run has begun in a folder; it may be that of another job. It has not only if there
  /// is no config.toml: a disk that fails is no sign that a run was given up.
  [[nodiscard]] static bool is_begun(const std::filesystem::path& path);

  /// Whether the run is over, its last checkpoint saved. A run that was killed never is.
  [[nodiscard]] static bool is_over(const std::filesystem::path& path);

private:
  explicit run_directory(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  bool is_new_ = true; ///< Whether `create` made the folder.
};

} // namespace troupe
