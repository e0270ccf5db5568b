// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a job: saved beside the training, found again after a crash.
#pragma once

#include "actors/checkpoint/checkpoint_directory.hpp"
#include "strategies/optimizers/session_hook.hpp"

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace troupe {

/// When checkpoints are made and what becomes of them.
struct checkpoint_options {
  uint64_t every_steps = 0; ///< After every so many updates; 0 = not by count.
  job_time every{0};        ///< After the first step that ends so long after the last one; 0 = not.
  size_t keep = 5;          ///< The newest so many stay.
  std::map<std::string, std::string> notes{}; ///< Put into every file.
  /// Told what could not be written, as `line_teller` tells it; may be empty.
  std::function<void(const std::string&)> on_warning{};
};

/// A job that is killed should lose no more than the steps since its last checkpoint, and training
/// should not wait for a disk. Between two steps this takes shares in the owners' memory; a thread
/// of the world's then writes the file, while training goes on and updates write elsewhere. While a
/// file is being written the newest snapshot that comes waits, an older one that waits is dropped.
///
/// The last step of a job is always saved. Cost: for as long as a file is written, the memory of
/// what changes meanwhile.
class checkpoint_saver_hook final : public session_hook {
public:
  /// Errors: throws `failure` with resource if the folder cannot be made or written to;
  /// invalid_argument if neither `every_steps` nor `every` is set, or `keep` is 0.
  checkpoint_saver_hook(const std::filesystem::path& folder, checkpoint_options options);

  void begin(session_plan& plan) override;
  bool wants_snapshot(uint64_t step, job_time now, bool last) override;
  void after_snapshot(const job_snapshot& snapshot) override;

  /// Waits until the last file is written. Errors: throws `failure` if it could not be.
  void end(const job_report& report) override;

  /// The step of the newest file that was written whole, if any was. Thread: any.
  [[nodiscard]] std::optional<uint64_t> saved_step() const;

private:
  void write_pending();
  [[nodiscard]] expected<void> write(const job_snapshot& snapshot);

  /// The checkpoint of a step was not written. Thread: one that holds `mutex_`.
  void fail_at(uint64_t step, error reason);

  /// Warns of trouble that the checkpoint before did not have. @param trouble Empty: there is none.
  template <class Line>
  void tell(std::string trouble, const Line& line);

  checkpoint_options options_;
  world* world_ = nullptr;
  job_time last_wanted_{0};

  mutable std::mutex mutex_;
  std::condition_variable written_;
  checkpoint_directory directory_;      ///< Used by the one thread that writes.
  std::optional<job_snapshot> pending_; ///< The next to be written.
  bool writes_ = false;
  std::optional<uint64_t> saved_;
  std::optional<error> failure_; ///< The last write's; nothing if it succeeded.
  std::string told_; ///< The last write's error without its step, as warned of; empty: none.
};

/// A checkpoint as it was found.
struct found_checkpoint {
  job_snapshot snapshot;
  std::map<std::string, std::string> notes;
};

/// The newest checkpoint in a folder that is whole; nothing if the folder has no checkpoints, or is
/// not there. Nothing in the folder is changed: a job may be writing there.
/// @param on_warning Told of each newer one that is damaged, as `line_teller` tells it; may be
/// empty. @param end Only checkpoints of fewer steps; nothing: of any.
/// Errors: throws `failure` with malformed if there are checkpoints and none is whole, or the
/// newest whole one is no job of ours; as `checkpoint_directory::newest_valid` if the folder or a
/// checkpoint cannot be read. A job that began anew then would leave its progress behind.
[[nodiscard]] std::optional<found_checkpoint>
find_checkpoint(const std::filesystem::path& folder,
                const std::function<void(const std::string&)>& on_warning = {},
                std::optional<uint64_t> end = {});

} // namespace troupe
