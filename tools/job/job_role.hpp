// SPDX-License-Identifier: Apache-2.0
// The role of a process in a job.
#pragma once

#include "messages/errors/errc.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"
#include "tools/job/job_optimizer.hpp"
#include "tools/job/job_process.hpp"

#include <optional>

namespace troupe {

/// The part of a job that differs between its processes. A process has one of three roles: the
/// leader has the run's folder; a follower writes nothing; the evaluator reads the folder.
///
/// | role      | `prepare`                   | `train`               | `conclude`            |
/// |-----------|-----------------------------|-----------------------|-----------------------|
/// | leader    | finds its checkpoint,       | trains, with hooks;   | ends files, sums up,  |
/// |           | makes the folder, announces | evaluates in the end  | writes report, draws  |
/// | follower  | announces the cluster       | trains                | says how it ended     |
/// | evaluator | finds the folder            | evaluates checkpoints | says how many         |
///
/// Thread: that of the process.
class job_role {
public:
  job_role(const job_role&) = delete;
  job_role& operator=(const job_role&) = delete;
  virtual ~job_role() = default;

  /// Comes before the body, and begins to watch signals.
  /// @returns The exit code, if something is wrong: the body does not run then.
  [[nodiscard]] virtual std::optional<int> prepare() = 0;

  /// Whether `train` is not to be called again.
  [[nodiscard]] virtual bool has_trained() const = 0;

  /// Is called by the body. Errors: in the report; throws `failure` if the job did not begin.
  [[nodiscard]] virtual job_report train(troupe::strategy& strategy, const job_optimizer& optimizer,
                                         const step_function& step)
    = 0;

  /// Comes after the body. @param thrown Why the body threw, if it did.
  /// @returns The exit code of the process.
  [[nodiscard]] virtual int conclude(const std::optional<error>& thrown) = 0;

protected:
  /// @param process Outlives the role.
  explicit job_role(job_process& process) : process_(process) {}

  /// Trains as `troupe::train`, with a step that only waits if the options ask for one.
  [[nodiscard]] job_report train_with(troupe::strategy& strategy, const job_optimizer& optimizer,
                                      const step_function& step,
                                      const training_options& options) const;

  /// Errors: throws `failure` with the report's reason if the job did not begin.
  static void throw_unless_begun(const job_report& report);

  /// The exit code of a body that has returned, or thrown, before it had trained.
  /// @param restores As of `code_before_training`.
  [[nodiscard]] int code_without_training(const std::optional<error>& thrown,
                                          bool restores = false) const;

  /// The exit code for an error before the first step, if no process is missing.
  /// @param restores Training has been given a checkpoint, and throws.
  [[nodiscard]] static exit_code code_before_training(errc failure, bool restores = false);

  job_process& process_;
};

} // namespace troupe
