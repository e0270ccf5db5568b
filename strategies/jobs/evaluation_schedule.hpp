// SPDX-License-Identifier: Apache-2.0
// The choice of the checkpoint that an evaluator takes next, and the end of its waiting.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace troupe {

/// When an evaluator is done, and how long it waits.
struct evaluation_limits {
  uint64_t max_evaluations = 0;      ///< 0: as many as there are checkpoints.
  std::optional<uint64_t> last_step; ///< Nothing comes after the checkpoint of this step.
  std::optional<uint64_t> after;     ///< Evaluated before: checkpoints up to this step.
  job_time timeout{0};               ///< How long there may be nothing new.
};

/// Plain decisions, without a clock or a folder: the caller gives the checkpoints and the time.
///
/// Checkpoints are taken in order, each once. Training keeps the newest few, so an
/// evaluator that is slower than training loses those in between and never falls behind further.
class evaluation_schedule {
public:
  /// The state of the folder and of training when the evaluator looks.
  struct sight {
    /// Whether training had ended before the folder was looked at: then all checkpoints are there.
    bool is_over = false;
    std::span<const uint64_t> steps; ///< Steps of the checkpoints, ascending.
    uint64_t progress = 0;           ///< Changes as long as training is alive.
    job_time now{0};
  };

  enum class action {
    evaluate, ///< The checkpoint of `step`.
    wait,     ///< Nothing new, but there may be.
    finish,   ///< Everything is evaluated.
    give_up,  ///< There has been nothing new for too long.
  };

  struct decision {
    action what = action::wait;
    uint64_t step = 0;
  };

  /// @param now When the timeout begins.
  evaluation_schedule(evaluation_limits limits, job_time now)
    : limits_(limits), done_up_to_(limits.after), news_at_(now) {}

  /// The next thing to do.
  [[nodiscard]] decision next(const sight& seen);

  /// The checkpoint of this step is not to be taken again.
  /// @param counts Whether it was evaluated, and not found to be unreadable or gone.
  void on_done(uint64_t step, bool counts, job_time now);

  /// Checkpoints evaluated.
  [[nodiscard]] uint64_t count() const { return count_; }

  /// The newest step that was evaluated.
  [[nodiscard]] std::optional<uint64_t> last_evaluated() const { return last_evaluated_; }

private:
  [[nodiscard]] bool has_all() const;

  evaluation_limits limits_;
  std::optional<uint64_t> done_up_to_;
  std::optional<uint64_t> last_evaluated_;
  uint64_t count_ = 0;
  uint64_t progress_ = 0;
  job_time news_at_;
};

} // namespace troupe
