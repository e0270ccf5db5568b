// SPDX-License-Identifier: Apache-2.0
// A job without parameter servers: in every step all replicas wait for the sum of all gradients.
#pragma once

#include "simulation/collective_clock.hpp"
#include "simulation/replica_draws.hpp"
#include "simulation/scenario.hpp"
#include "simulation/step_book.hpp"

#include <string_view>
#include <vector>

namespace troupe {

/// The part of the scenario that a job of collectives lacks: "dead replicas"; empty if there is
/// no such thing.
[[nodiscard]] std::string_view reason_against_collectives(const scenario& scenario);

/// As a `multi_worker_mirrored` strategy trains: each replica computes its gradient; a process
/// takes part in an all_reduce when all its replicas have theirs, and they go on as soon as it has
/// the result. Its replicas' gradients it adds up in its own memory, in no time. No number of
/// backups can help: a straggler holds up all, and so does a slow link.
class collective_job {
public:
  /// Both outlive it. @pre `scenario.collective` is given.
  /// Errors: throws `failure` with invalid_argument, as `sync_options::validate`, and if there is a
  /// reason against it.
  collective_job(const scenario& scenario, scenario_report& report);

  void run();

private:
  void make_step(uint64_t step);

  const scenario& scenario_;
  scenario_report& report_;
  step_book book_;
  replica_draws draws_;
  collective_clock clock_;
  std::vector<job_time> begun_;  ///< When each replica had its gradient of the current step.
  std::vector<job_time> hosts_;  ///< When each process had the gradients of all its replicas.
  std::vector<job_time> ends_;   ///< When each had the result of the last step.
  std::vector<job_time> waited_; ///< For it.
  job_time ended_{0};            ///< When all had.
};

} // namespace troupe
