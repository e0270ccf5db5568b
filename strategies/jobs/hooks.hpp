// SPDX-License-Identifier: Apache-2.0
// The hooks that most jobs have.
#pragma once

#include "actors/recording/event_file.hpp"
#include "strategies/optimizers/session_hook.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// Ends a job at a step of its own choice, which may come before that of `training_options::steps`.
/// A job that begins at its last step, such as one that is started again after its end, ends well
/// without a step. TensorFlow's hook looks only after a step, so there such a job makes one more.
class stop_at_step_hook final : public session_hook {
public:
  /// @param last_step The global step to stop at, at least 1, whatever the job begins with.
  /// Errors: throws `failure` with invalid_argument for step 0.
  [[nodiscard]] static std::shared_ptr<stop_at_step_hook> at(uint64_t last_step);

  /// @param num_steps Updates that the job makes, at least 1.
  /// Errors: throws `failure` with invalid_argument for 0 steps.
  [[nodiscard]] static std::shared_ptr<stop_at_step_hook> after(uint64_t num_steps);

  /// Errors: throws `failure` with invalid_argument if the step is past already.
  void begin(session_plan& plan) override;

private:
  stop_at_step_hook() = default;

  std::optional<uint64_t> last_step_;
  uint64_t num_steps_ = 0; ///< Counts if there is no `last_step_`.
};

/// Says from time to time where a job is.
class logging_hook final : public session_hook {
public:
  /// @param every_steps 0 = only the end. @param say Told one line at a time.
  /// Errors: throws `failure` with invalid_argument if `say` is empty.
  logging_hook(uint64_t every_steps, std::function<void(const std::string&)> say);

  void after_step(const session_control& session, const step_record& step) override;
  void end(const job_report& report) override;

private:
  uint64_t every_steps_;
  std::function<void(const std::string&)> say_;
};

/// Leaves the curves of a job for TensorBoard: loss, speed, gradients accepted and dropped.
class summary_saver_hook final : public session_hook {
public:
  /// @param every_steps Shows one step of so many. @param origin Names the file.
  /// Errors: throws `failure` with resource if the file cannot be made, invalid_argument for 0
  /// steps.
  summary_saver_hook(const std::filesystem::path& folder, uint64_t every_steps,
                     const event_origin& origin);

  /// Errors: throws `failure` with resource if the file cannot be written.
  void after_step(const session_control& session, const step_record& step) override;
  void end(const job_report& report) override;

private:
  uint64_t every_steps_;
  event_file curves_;
};

/// Ends a job once its loss is not a number any more: what comes after is wasted.
class nan_stop_hook final : public session_hook {
public:
  /// @param fail Whether the job then counts as failed.
  explicit nan_stop_hook(bool fail = true) : fail_(fail) {}

  void after_step(const session_control& session, const step_record& step) override;

private:
  bool fail_;
};

/// Passes a window of steps to a function, such as a timeline's: the steps before and after are not
/// worth a file of gigabytes.
class profile_window_hook final : public session_hook {
public:
  /// @param first The first global step to show. @param last The last one.
  /// Errors: throws `failure` with invalid_argument if `show` is empty.
  profile_window_hook(uint64_t first, uint64_t last, std::function<void(const step_record&)> show);

  void after_step(const session_control& session, const step_record& step) override;

private:
  uint64_t first_;
  uint64_t last_;
  std::function<void(const step_record&)> show_;
};

} // namespace troupe
