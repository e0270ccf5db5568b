// SPDX-License-Identifier: Apache-2.0
// A trainer's job: the command line, the cluster, the run folder, the summary and the exit code.
#pragma once

#include "messages/errors/errc.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/training.hpp"
#include "tools/job/job_optimizer.hpp"
#include "tools/job/job_subject.hpp"
#include "tools/options/job_options.hpp"
#include "tools/run/quality_measure.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace troupe {

class running_job;
struct job_request;

/// Settings of a job that its program makes in code; every field is optional.
struct job_settings {
  std::string about; ///< Says in --help what the program does.
  /// Hold unless the command line or a file says otherwise; `run` refuses one that its option does
  /// not accept.
  job_options defaults;
  quality_measure measure = quality_measures::loss; ///< Names losses and evaluations.
  /// Evaluates the variables, in order of creation, on held-out data.
  std::function<expected<double>(std::span<const tensor>)> evaluate;
};

/// A step function alone leaves no files to look at and no checkpoint to resume from. A job, on
/// which `troupe train` is built, adds the options of replicas, clusters, checkpoints and the run;
/// a folder with metrics, ledger, timeline, curves, checkpoints and plots; a progress line, a
/// summary, signals, restarts, and exit codes.
///
///     int main(int argc, char** argv) {
///       job job{argc, argv};
///       return job.run([&] {
///         auto line = job.strategy().make_variable("line", zeros({2}));
///         auto optimizer = job.optimizer(rules::sgd{.learning_rate = 0.1});
///         auto step = [=](replica_context& context) -> task<void> {
///           ...
///           auto applying = optimizer.apply_gradients(context, gradient, line);
///           co_await applying;
///         };
///         job.train(optimizer, step);
///       });
///     }
///
/// The same program runs as one process or as many, each of which calls the body. The evaluator of
/// a cluster evaluates checkpoints where the other processes train.
///
/// Thread: the one that made it.
class job {
public:
  /// @param argument_count, arguments As of `main`; `arguments` outlive the job.
  job(int argument_count, const char* const* arguments, job_settings settings = {});

  /// Makes a job whose program has read the command line.
  explicit job(job_request request);

  ~job();
  job(const job&) = delete;
  job& operator=(const job&) = delete;

  /// Adds an option of the program's own, which files and --help have, too. A resumed job keeps its
  /// value. @param name With dashes: "--width". @param argument Stands for the value in the help.
  /// @param place Holds the default, and gets the value when the command line is read.
  /// @pre The job reads the command line. Before `run` and `find_cluster`, which refuse a name that
  /// exists already, and a default out of range.
  /// Units: a whole number, from 0 to 10^18; a finite number.
  void option(const std::string& name, const std::string& argument, const std::string& help,
              std::string& place);
  void option(const std::string& name, const std::string& argument, const std::string& help,
              uint64_t& place);
  void option(const std::string& name, const std::string& argument, const std::string& help,
              double& place);

  /// Describes the model and the data. Before `run`.
  void describe(job_subject subject);

  /// Reads the command line, if the job reads one, and finds the cluster, for a program that has to
  /// know its role before `run`. Where `run` only answers the command line, as for --help, the
  /// process counts as alone.
  /// Errors: those that `run` refuses; it may still be called, prints the line and returns its
  /// code.
  [[nodiscard]] expected<void> find_cluster();

  /// Reads the command line unless it is read, runs the body, which is to call `train`, and prints
  /// the result. A body that throws ends the job, and one line says why. A `failure` that it throws
  /// before it trains counts as misuse, which no launcher tries again, unless it is `user_code` or
  /// `resource`, or, in a job of several processes, about others (`is_about_others`). A job runs
  /// once; jobs of a process run one after the other. Outside of the body, `world`, `server`,
  /// `strategy` and `train` throw `failure` with failed_precondition.
  /// @returns The value for `main` to return: see `exit_code`.
  [[nodiscard]] int run(const std::function<void()>& body);

  // ---- for the body ----

  /// The options as they were read and fitted to the cluster.
  [[nodiscard]] const job_options& options() const;

  /// Whether this process leads the job. After `find_cluster`, or in the body.
  /// Errors: throws `failure` with failed_precondition before.
  [[nodiscard]] bool is_chief() const;

  [[nodiscard]] troupe::world& world();

  /// This process as a member of its cluster, for strategies and actors of the program's own.
  [[nodiscard]] troupe::server& server();

  /// The strategy that --strategy names. Errors: throws `failure`, as its constructor and `server`;
  /// failed_precondition if other processes have other options.
  [[nodiscard]] troupe::strategy& strategy();

  /// How gradients are aggregated, for optimizers of the program's own.
  [[nodiscard]] sync_options sync() const { return sync_of(options()); }

  /// Adds a hook, which is called before those of the run folder, in the process that leads.
  void add_hook(std::shared_ptr<session_hook> hook);

  /// The optimizer that `strategy()` takes. @param plan, rule The update of a step.
  /// @param clip_global_norm As of `sync_options` and `optimizer_options`.
  /// Errors: throws `failure`, as the optimizer's constructor.
  [[nodiscard]] job_optimizer optimizer(const update_plan& plan, double clip_global_norm = 0) const;
  [[nodiscard]] job_optimizer optimizer(const update_rule& rule) const;

  /// Trains the variables of `strategy()`, once.
  /// @returns How the job ended. Errors: in the report; throws `failure` if the job did not begin.
  job_report train(const job_optimizer& optimizer, const step_function& step);

  /// Trains the variables of a strategy of the program's own, made with `world()`, and with
  /// `server().placement()` where it takes one.
  /// @param optimizer Where replicas do not meet, a `sync_replicas_optimizer`.
  job_report train(troupe::strategy& strategy, const job_optimizer& optimizer,
                   const step_function& step);

private:
  struct command_line;

  std::unique_ptr<command_line> command_line_; ///< Null if the program has read it.
  std::unique_ptr<running_job> running_;
};

} // namespace troupe
