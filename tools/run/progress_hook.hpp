// SPDX-License-Identifier: Apache-2.0
// The hook that shows the progress of a job on standard error.
#pragma once

#include "actors/recording/records.hpp"
#include "actors/recording/stopped_gradients.hpp"
#include "strategies/optimizers/session_hook.hpp"
#include "tools/run/progress.hpp"
#include "tools/run/quality_measure.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

namespace troupe {

/// A job that prints nothing looks like one that hangs. This hook shows the step, the loss, the
/// speed, the replicas, and the time that is left in a line on standard error, which is rewritten
/// in place on a terminal. Thread: any; calls wait for each other.
class progress_hook final : public session_hook {
public:
  /// @param measure Says how losses are shown.
  explicit progress_hook(quality_measure measure = quality_measures::loss);

  void begin(session_plan& plan) override;
  void after_step(const session_control& session, const step_record& step) override;
  void end(const job_report& report) override;

  /// Prints a line above the progress line, and keeps it.
  void say(std::string_view line);

  /// Prints a line above the progress line.
  void show(std::string_view line);

  /// Keeps all lines of `say` by this function from now on. Thread of `keep`: any.
  void keep_by(std::function<void(std::string_view line)> keep);

  /// Ends the progress line, so that what is printed next begins on a new one.
  void finish();

private:
  void count_dropped(const step_record& step); ///< With the lock held.

  quality_measure measure_;
  std::mutex mutex_;
  progress progress_;
  std::function<void(std::string_view line)> keep_;
  uint64_t step_count_ = 0;
  uint64_t examples_ = 0;
  stopped_gradients stopped_;
  uint64_t dropped_ = 0; ///< Gradients that no update used, each once.
};

} // namespace troupe
