// SPDX-License-Identifier: Apache-2.0
// The job of a scenario, run by actors in a virtual world.
#pragma once

#include "simulation/faults/fault_driver.hpp"
#include "simulation/learning_job.hpp"
#include "simulation/network/simulated_network.hpp"
#include "simulation/replica_draws.hpp"
#include "simulation/scenario.hpp"
#include "simulation/step_book.hpp"
#include "simulation/update_delay.hpp"
#include "strategies/jobs/training.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace troupe {

/// Keeps a job's last snapshot for a restart of all its processes: the variables, and estimates for
/// dynamic backups, but no token and no replica.
class snapshot_keeper final : public session_hook {
public:
  /// @param every Steps between two snapshots.
  explicit snapshot_keeper(uint64_t every) : every_(every) {}

  void begin(session_plan& plan) override { plan.takes_snapshots = true; }

  bool wants_snapshot(uint64_t step, job_time /*now*/, bool last) override {
    return !last && step % every_ == 0;
  }

  void after_snapshot(const job_snapshot& taken) override;

  [[nodiscard]] const std::optional<job_snapshot>& last() const { return last_; }

private:
  uint64_t every_;
  std::optional<job_snapshot> last_;
};

/// One run of a scenario by the actors of a real job; by those of several, if it is restarted.
class simulated_job {
public:
  /// Both outlive it. Errors: as of `simulate`.
  simulated_job(const scenario& scenario, scenario_report& report);

  void run();

private:
  job_report attempt();
  void make_variables(strategy& strategy);
  void look_at_loss(strategy& strategy, uint64_t step);
  void look_at_end(strategy& strategy, uint64_t step);
  training_options options();
  void keep(const step_record& step);
  void go_back_to(uint64_t step);
  [[nodiscard]] step_function step_of(const sync_replicas_optimizer& optimizer);
  [[nodiscard]] step_function compute_nothing(const sync_replicas_optimizer& optimizer);
  void spoil(uint32_t replica, std::vector<gradient>& gradients);
  [[nodiscard]] job_time pace(uint32_t replica);
  [[nodiscard]] std::optional<job_time> next_try();
  [[nodiscard]] bool are_owners_up() const;
  void wait_until(job_time time);
  [[nodiscard]] stall_report stall() const;
  [[nodiscard]] uint32_t count_live() const;

  const scenario& scenario_;
  scenario_report& report_;
  step_book book_;
  world world_;
  update_delay updates_;
  replica_draws draws_;
  std::optional<simulated_network> network_;
  std::optional<simulated_processes> processes_; ///< If the job meets at a roll call.
  std::optional<fault_driver> faults_;
  std::optional<learning_options> learning_; ///< With what faults do to gradients.
  std::optional<loss_watch> watch_;
  std::stop_source end_of_time_;
  std::vector<size_t> kept_;        ///< Gradients of each step that was made, and not undone since.
  uint32_t tries_ = 0;              ///< To begin the job, that came to nothing.
  std::vector<variable> variables_; ///< The current attempt's.
  std::shared_ptr<snapshot_keeper> snapshots_;
};

} // namespace troupe
