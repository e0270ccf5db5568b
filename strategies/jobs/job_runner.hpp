// SPDX-License-Identifier: Apache-2.0
// The life of a training job in one of its processes.
#pragma once

#include "strategies/jobs/hook_list.hpp"
#include "strategies/jobs/training.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Runs a training job in one process, from its first phase to its last. A process has one of three
/// roles: a job with a chief has one leader, the process of the chief, and its other processes, if
/// there are any, are members; the processes of a job without a chief are peers.
///
/// | phase     | leader                    | member              | peer               | next      |
/// |-----------|---------------------------|---------------------|--------------------|-----------|
/// | gathering | waits for members         | waits for JobBegins | -                  | preparing |
/// | preparing | restores variables, tells | spawns its part     | restores variables | training  |
/// |           | JobBegins, spawns actors  |                     |                    |           |
/// | training  | waits for the chief's     | waits for the end,  | makes one run for  | leaving   |
/// |           | report, ends its actors   | ends its replicas   | each step          |           |
/// | leaving   | tells JobEnded, waits     | waits until all     | -                  | over      |
/// |           | until members have left   | leave               |                    |           |
///
/// A job that does not begin goes from `gathering` to `leaving`. If hooks leave no step to make,
/// the leader spawns no chief, and the first peer, which says whether there are steps, says no; all
/// leave at once. A phase that throws is the last; a leader tells its members why, and reports it
/// instead if a process is missing. Hooks are told of the beginning when variables are restored,
/// before the chief and the replicas are spawned; of the session, when training begins; and of the
/// end, when training is over.
///
/// Thread: the one that made the world.
class job_runner {
public:
  job_runner(const job_runner&) = delete;
  job_runner& operator=(const job_runner&) = delete;
  virtual ~job_runner() = default;

  /// Runs the job; to be called once.
  /// @returns How the job ended.
  /// Errors: in the report, but for a call that is refused: throws what its role throws.
  [[nodiscard]] job_report run();

protected:
  /// @param strategy Outlives the runner, as the options do.
  /// @param hooks Told of the job in this process. @param control Ends the job.
  job_runner(troupe::strategy& strategy, const training_options& options,
             std::vector<std::shared_ptr<session_hook>> hooks, session_control control)
    : strategy_(strategy), world_(strategy.world()), options_(options), control_(control),
      hooks_(std::move(hooks), std::move(control)) {}

  /// Gives a warning to the caller's `on_warning`, one at a time, or writes it on standard error.
  /// An exception of `on_warning` ends the job. Thread: any.
  void warn(const std::string& line);

  /// Warns of an evaluation that threw. To be called where its exception is handled. Thread: any.
  void warn_of_evaluation(uint64_t step);

  troupe::strategy& strategy_;
  troupe::world& world_;
  const training_options& options_;
  session_control control_;
  hook_list hooks_;

private:
  enum class phase : uint8_t { gathering, preparing, training, leaving, over };

  /// Waits until the processes of the job are there.
  /// @returns Nothing, if the job begins; else how it ends in this process.
  [[nodiscard]] virtual std::optional<job_report> gather() { return std::nullopt; }

  /// Says how hooks see the other processes of the job, where they are observed.
  virtual void show_tasks(session_plan&) {}

  /// Brings variables and clock to where the job begins.
  /// @returns Updates made before.
  [[nodiscard]] virtual uint64_t restore() = 0;

  /// Spawns the part of the job that stands in this process. @param plan As hooks have left it.
  virtual void prepare(const session_plan& plan) = 0;

  /// Waits until the job is over; then no actor refers to the caller's functions any more.
  [[nodiscard]] virtual job_report train() = 0;

  /// Ends the job together with the other processes. @param report How it ended in this one.
  /// @returns How it ended for all.
  [[nodiscard]] virtual job_report leave(job_report report) { return report; }

  /// Ends a job that threw. @returns How it ended, unless it throws the same again.
  [[nodiscard]] virtual job_report abandon(const std::exception_ptr& thrown) {
    std::rethrow_exception(thrown);
  }

  /// Passes a phase. @returns The next one.
  [[nodiscard]] phase pass(phase now);

  void begin();
  [[nodiscard]] job_report play();

  std::optional<job_report> report_; ///< From the moment when the job is over here.
  bool has_begun_ = false;
  std::mutex warning_; ///< Held while a warning is told.
};

/// Runs a job with a chief in the process where the chief stands.
/// Errors: in the report: as `train`. Throws `failure`, which members are told:
/// failed_precondition, if hooks leave the job without a chief; as `restore` and `placement::see`.
[[nodiscard]] job_report run_as_leader(strategy& strategy, const sync_replicas_optimizer& optimizer,
                                       const session_function& session,
                                       const training_options& options);

/// Runs the part of a job with a chief that stands in another process. The report has no more than
/// step and reason. @pre The strategy has a placement that does not lead.
/// Errors: in the report: as `train`; unavailable, if the process of the chief is gone, naming
/// it and the last step that was heard of. Throws `failure`, as `placement::see`.
[[nodiscard]] job_report run_as_member(strategy& strategy, const sync_replicas_optimizer& optimizer,
                                       const session_function& session,
                                       const training_options& options);

/// Runs a job without a chief in one of the processes that make its steps, or in the only one.
/// Errors: in the report: as `strategy::run`; what a hook threw. Throws `failure`, as
/// `spread_snapshot` and `restore`.
[[nodiscard]] job_report run_as_peer(strategy& strategy, const step_function& step,
                                     const training_options& options);

} // namespace troupe
