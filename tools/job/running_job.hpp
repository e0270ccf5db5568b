// SPDX-License-Identifier: Apache-2.0
// Runs a job in one process, from finding its cluster to its exit code.
#pragma once

#include "messages/errors/errc.hpp"
#include "strategies/cluster/resolved_cluster.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"
#include "tools/job/job_devices.hpp"
#include "tools/job/job_optimizer.hpp"
#include "tools/job/job_request.hpp"
#include "tools/job/job_service.hpp"
#include "tools/job/job_subject.hpp"
#include "tools/job/resumption.hpp"
#include "tools/options/job_options.hpp"
#include "tools/run/progress_hook.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/run/run_folder_hook.hpp"
#include "tools/system/signal_watch.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Runs a program's body in a process of a job. A process has one of three roles: the leader has
/// the run's folder; a follower writes nothing; the evaluator reads the folder.
///
/// | role      | before the body             | in `train`            | after the body        |
/// |-----------|-----------------------------|-----------------------|-----------------------|
/// | leader    | finds its checkpoint,       | trains, with hooks;   | ends files, sums up,  |
/// |           | makes the folder, announces | evaluates in the end  | writes report, draws  |
/// | follower  | announces the cluster       | trains                | says how it ended     |
/// | evaluator | finds the folder            | evaluates checkpoints | says how many         |
///
/// World, server and strategy end with the body, so that no process waits for plots.
/// Thread: the one that made it.
class running_job {
public:
  explicit running_job(job_request request) : request_(std::move(request)) {}

  /// Finds the cluster, unless it was found before. Errors: as `troupe::find_cluster`.
  [[nodiscard]] expected<void> find_cluster();

  /// Takes the process for one without a cluster, as for a text that is printed instead of a run.
  void be_alone();

  /// Describes the model and the data. @pre Before `run`.
  void describe(job_subject subject) { subject_ = std::move(subject); }

  /// Begins the only run. @returns The exit code if the job has run before.
  [[nodiscard]] std::optional<int> begin();

  /// Runs the body, with everything around it; one job of a process at a time. @pre `begin`.
  /// @returns The exit code of the process.
  [[nodiscard]] int run(const std::function<void()>& body);

  // ---- for the body ----

  [[nodiscard]] const job_options& options() const { return request_.options; }

  /// Errors: throws `failure` with failed_precondition before the cluster was found.
  [[nodiscard]] bool is_chief() const;

  /// Refuses a call outside of the body. @param call Names the function: "strategy()".
  /// Errors: throws `failure` with failed_precondition.
  void require_body(std::string_view call) const;

  [[nodiscard]] troupe::world& world();
  [[nodiscard]] troupe::server& server();

  /// The strategy that the options name. Errors: throws `failure`, as its constructor and `server`;
  /// failed_precondition if other processes have other options.
  [[nodiscard]] troupe::strategy& strategy();

  void add_hook(std::shared_ptr<session_hook> hook) { hooks_.push_back(std::move(hook)); }

  /// Trains once. Errors: in the report; throws `failure` if the job did not begin, or with
  /// failed_precondition if it has trained already.
  job_report train(troupe::strategy& strategy, const job_optimizer& optimizer,
                   const step_function& step);

  /// Updates of the whole job.
  [[nodiscard]] uint64_t steps() const;

private:
  [[nodiscard]] int lead(const std::function<void()>& body);
  [[nodiscard]] int follow(const std::function<void()>& body);
  [[nodiscard]] int evaluate_run(const std::function<void()>& body);

  [[nodiscard]] std::optional<int> prepare_run();
  [[nodiscard]] expected<run_directory> make_directory() const;
  void announce() const;
  void announce_cluster() const;
  [[nodiscard]] int conclude(const std::optional<error>& thrown);
  [[nodiscard]] int code_without_training(const std::optional<error>& thrown) const;
  [[nodiscard]] exit_code code_before_training(errc failure) const;
  void print_evaluation() const;
  void write_page();

  [[nodiscard]] std::optional<error> call(const std::function<void()>& body);
  void leave_cluster();
  void warn(const std::string& line) const;
  void print_notice(const std::string& line) const;
  void keep_notice(std::string_view line) const;

  void check_agreement(troupe::strategy& strategy);
  [[nodiscard]] training_options common_training_options();
  [[nodiscard]] job_report train_as_leader(troupe::strategy& strategy,
                                           const job_optimizer& optimizer,
                                           const step_function& step);
  [[nodiscard]] job_report train_as_evaluator(const troupe::strategy& strategy);
  [[nodiscard]] std::vector<std::shared_ptr<session_hook>> leader_hooks();
  [[nodiscard]] double evaluate(std::span<const tensor> values);
  void keep_evaluation(uint64_t step, job_time when, double value);
  void evaluate_last_step(troupe::strategy& strategy, job_report& report);
  void read_with_leader(troupe::strategy& strategy, job_report& report) const;

  struct evaluation {
    uint64_t step = 0;
    double value = 0;
  };

  job_request request_;
  job_subject subject_;
  bool has_begun_ = false;
  bool is_in_body_ = false;
  std::optional<resolved_cluster> cluster_;
  job_devices devices_;
  std::optional<signal_watch> signals_;              ///< While it runs.
  std::vector<std::shared_ptr<session_hook>> hooks_; ///< The program's own.

  // Members that only the leader uses.
  job_beginning beginning_;
  bool restores_ = false; ///< Training has been given the checkpoint of `beginning_`, and throws.
  std::optional<job_service> service_; ///< If the job is served.
  std::optional<run_directory> directory_;
  std::shared_ptr<progress_hook> progress_;
  std::shared_ptr<run_folder_hook> folder_; ///< Null before training.
  std::optional<evaluation> last_evaluation_;
  bool evaluation_failed_ = false; ///< The last evaluation has failed: its value is NaN.
  std::string last_page_; ///< The report's content, as `run_json`; empty: no report was written.

  std::string agreement_;
  std::optional<job_report> report_;  ///< Once the job has trained, or has failed to begin.
  std::optional<int> evaluator_code_; ///< The evaluator's exit code, once it has evaluated.

  std::unique_ptr<troupe::world> world_;
  std::unique_ptr<troupe::server> server_;
  std::unique_ptr<troupe::strategy> strategy_; ///< Last: it uses the others.
};

} // namespace troupe
