// SPDX-License-Identifier: Apache-2.0
// The part of a job in one process that does not depend on the process's role.
#pragma once

#include "messages/errors/errc.hpp"
#include "strategies/cluster/resolved_cluster.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/jobs/training.hpp"
#include "tools/job/job_devices.hpp"
#include "tools/job/job_request.hpp"
#include "tools/job/job_subject.hpp"
#include "tools/options/job_options.hpp"
#include "tools/system/signal_watch.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A process of a job, whatever its role: its request and subject, its cluster, and the objects
/// that the options ask for. World, server and strategy are made when they are first asked for, and
/// end with the program's body, so that no process waits for plots.
/// Thread: the one that made it, but for `warn`.
class job_process {
public:
  explicit job_process(job_request request) : request_(std::move(request)) {
    pass_over_user_signal();
  }

  job_process(const job_process&) = delete;
  job_process& operator=(const job_process&) = delete;

  /// Finds the cluster, unless it was found before. Errors: as `troupe::find_cluster`.
  [[nodiscard]] expected<void> find_cluster();

  /// Takes the process for one without a cluster, as for a text that is printed instead of a run.
  void be_alone();

  /// Describes the model and the data. @pre Before the run.
  void describe(job_subject subject) { subject_ = std::move(subject); }

  // ---- for the body ----

  [[nodiscard]] const job_options& options() const { return request_.options; }

  /// Errors: throws `failure` with failed_precondition before the cluster was found.
  [[nodiscard]] bool is_chief() const;

  [[nodiscard]] troupe::world& world();
  [[nodiscard]] troupe::server& server();

  /// The strategy that the options name. Errors: throws `failure`, as its constructor and `server`;
  /// failed_precondition if other processes have other options.
  [[nodiscard]] troupe::strategy& strategy();

  void add_hook(std::shared_ptr<session_hook> hook) { hooks_.push_back(std::move(hook)); }

  // ---- for its role ----

  /// The request. A role settles the folder of the run in its options.
  [[nodiscard]] const job_request& request() const { return request_; }

  [[nodiscard]] const job_subject& subject() const { return subject_; }

  /// The program's own hooks.
  [[nodiscard]] std::span<const std::shared_ptr<session_hook>> hooks() const { return hooks_; }

  /// @pre The cluster was found.
  [[nodiscard]] const resolved_cluster& cluster() const { return *cluster_; }

  [[nodiscard]] const job_devices& devices() const { return devices_; }

  /// Updates of the whole job.
  [[nodiscard]] uint64_t steps() const;

  /// Watches signals from now on, until the run is over.
  void watch_signals() { signals_.emplace(); }

  /// @pre Signals are watched.
  [[nodiscard]] signal_watch& signals() { return *signals_; }

  /// Prints the cluster, unless the process is alone.
  void announce_cluster() const;

  /// Prints warnings by this function from now on. Thread of `print`: any.
  void warn_by(std::function<void(const std::string& line)> print) {
    print_warning_ = std::move(print);
  }

  /// Prints a warning after the program's name. Thread: any.
  void warn(const std::string& line) const;

  /// The options of a training that all roles have in common. @pre Signals are watched.
  [[nodiscard]] training_options common_training_options();

protected:
  /// Prepares the process for its role: finds cluster and devices.
  /// Errors: as `find_cluster` and `find_devices`.
  [[nodiscard]] expected<void> prepare();

  /// Compares the options, as `strategy` does, if this is another one: one of the program's own.
  /// Errors: as `check_same_options`.
  void check_other(troupe::strategy& strategy);

  /// Ends world, server and strategy.
  void leave_cluster();

  std::optional<signal_watch> signals_; ///< While it runs.

private:
  void check_agreement(troupe::strategy& strategy);

  job_request request_;
  job_subject subject_;
  std::vector<std::shared_ptr<session_hook>> hooks_; ///< The program's own.
  std::optional<resolved_cluster> cluster_;
  job_devices devices_;
  std::string agreement_;
  std::function<void(const std::string& line)> print_warning_; ///< Empty: on standard error.

  std::unique_ptr<troupe::world> world_;
  std::unique_ptr<troupe::server> server_;
  std::unique_ptr<troupe::strategy> strategy_; ///< Last: it uses the others.
};

} // namespace troupe
