// SPDX-License-Identifier: Apache-2.0
// The evaluation of a job's checkpoints in a process beside it.
#pragma once

#include "actors/world/world.hpp"
#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/jobs/evaluation_schedule.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace troupe {

/// The checkpoints that an evaluator judges, how, and until when.
struct sidecar_evaluator_options {
  std::filesystem::path checkpoint_dir; ///< Where others save; it need not be there yet.

  /// Computes something from a checkpoint; what it throws ends the evaluator.
  /// `restore_snapshot` puts its variables into a strategy of this process.
  std::function<double(const found_checkpoint&)> evaluate;

  /// Told of each result, in the order of steps.
  std::function<void(const found_checkpoint&, double value)> on_result{};

  evaluation_limits limits{.last_step = {}, .after = {}, .timeout = std::chrono::minutes{10}};

  /// Whether training has ended, its last checkpoint saved. Empty: unknown.
  std::function<bool()> is_over{};

  /// A number that changes as long as training is alive. Empty: only checkpoints show that.
  std::function<uint64_t()> progress{};

  std::string waits_for = "the training job";    ///< Named if it is waited for in vain.
  job_time poll_every = std::chrono::seconds{1}; ///< How often the folder is looked at.
  /// Told of checkpoints that are damaged or cannot be read, as `line_teller` tells it; may be
  /// empty.
  std::function<void(const std::string&)> on_warning{};
  std::stop_token stop{}; ///< Ends it after the evaluation under way.
};

/// The result of an evaluator.
struct sidecar_report {
  uint64_t evaluations = 0;
  std::optional<uint64_t> last_step; ///< The step of the last checkpoint that it evaluated.
  bool is_stopped = false;           ///< It was asked to stop.
  std::optional<error> failure;
};

/// Evaluation takes time that training should not wait for, and its failure should end no
/// training. So another process does it, which neither listens nor dials: all that it knows of the
/// job is a folder that both see. No process waits for it, or notices if it is gone.
///
/// It ends when training has ended and the last checkpoint is evaluated, or by one of its limits. A
/// checkpoint that is damaged, or removed before its turn, is passed over. Where the system refuses
/// to read a checkpoint or the folder, that is warned of and tried again for the `timeout`.
///
/// Thread: the one that made the world.
/// Source: tf.keras.utils.SidecarEvaluator, which takes `max_evaluations` for the number of the
/// last checkpoint, evaluates the newest only, and waits for ever.
class sidecar_evaluator {
public:
  /// Errors: throws `failure` with invalid_argument without a folder or a function, and if
  /// `poll_every` is not positive.
  sidecar_evaluator(world& world, sidecar_evaluator_options options);

  /// Evaluates one checkpoint after the other, and returns when there will be no more.
  /// Errors: in the report: deadline_exceeded, naming what it has waited for; what `evaluate` or
  /// `on_result` threw; resource if the folder or a checkpoint cannot be read for the `timeout`.
  [[nodiscard]] sidecar_report start();

private:
  [[nodiscard]] expected<std::vector<uint64_t>> steps_there() const;
  [[nodiscard]] expected<bool> evaluate(uint64_t step, expected<checkpoint> whole) const;
  [[nodiscard]] bool may_try_again(const error& reason);
  [[nodiscard]] error waited_in_vain(const evaluation_schedule& schedule) const;

  world& world_;
  sidecar_evaluator_options options_;
  checkpoint_directory checkpoints_;
  std::optional<job_time> unreadable_since_; ///< Nothing: the last read was not refused.
};

} // namespace troupe
