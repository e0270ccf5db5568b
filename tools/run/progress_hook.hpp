// SPDX-License-Identifier: Apache-2.0
// The progress line of a job on standard error.
#pragma once

#include "actors/recording/records.hpp"
#include "strategies/optimizers/session_hook.hpp"
#include "tools/run/progress.hpp"
#include "tools/run/quality_measure.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

namespace troupe {

/// A job that says nothing looks like one that hangs. This keeps a line on standard error: step,
/// loss, speed, replicas, and the time that is left; on a terminal it is rewritten in place.
/// Thread: any; calls wait for each other.
class progress_hook final : public session_hook {
public:
  /// @param measure Says how losses are shown.
  explicit progress_hook(quality_measure measure = quality_measures::loss);

  void begin(session_plan& plan) override;
  void after_step(const session_control& session, const step_record& step) override;
  void end(const job_report& report) override;

  /// A line for people, above the progress line; kept, too.
  void say(std::string_view line);

  /// A line for people that is not kept.
  void show(std::string_view line);

  /// Has `keep` told of all lines that are said from now on. Thread of `keep`: any.
  void keep_by(std::function<void(std::string_view line)> keep);

  /// Ends the progress line, so that what is printed next begins on a new one.
  void finish();

private:
  quality_measure measure_;
  std::mutex mutex_;
  progress progress_;
  std::function<void(std::string_view line)> keep_;
  uint64_t step_count_ = 0;
  uint64_t dropped_ = 0; ///< Gradients that no update used.
};

} // namespace troupe
