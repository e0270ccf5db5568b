// SPDX-License-Identifier: Apache-2.0
// The part of a coordinator that stands in this process; all its handles here share it.
#pragma once

#include "actors/coordinator/coordinator.hpp"
#include "actors/interfaces/interfaces.hpp"
#include "actors/world/world.hpp"
#include "strategies/coordinator/closure_registry.hpp"
#include "strategies/coordinator/closure_waiter.hpp"
#include "strategies/coordinator/remote_value.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class placement;
class strategy;

/// How a coordinator works.
struct coordinator_options {
  /// Closures that may be queued; a caller that schedules more waits.
  size_t queue_capacity = 262'144;
  /// How long closures that run may take to stop when the coordinator ends, and processes that have
  /// not come yet to come: they would find no coordinator.
  job_time end_timeout = std::chrono::seconds{5};
  /// Worker i begins i times so late, but no later than the longest delay: while variables change
  /// fast, at the beginning of training, few workers disturb each other less.
  job_time start_delay{0};
  job_time start_delay_max = job_time::max();
  /// How long no closure may end while a caller waits for some: `join`, `fetch`, and `schedule` at
  /// a full queue. A single closure that takes longer needs more.
  job_time stall_deadline = std::chrono::minutes{10};
  /// Told every 10 s what is waited for; null: standard error.
  /// Thread: the one that waits.
  std::function<void(const std::string& line)> on_waiting;
  /// Told, in one line, of workers that are lost and workers that are back; and of owners, where
  /// they are replicated. Empty: the lines go to standard error, as what it throws does. Thread: an
  /// actor's.
  std::function<void(const std::string&)> on_warning;
};

/// The part of a coordinator that stands in this process: where it leads, the coordinator's actor
/// and the workers of this process, from the beginning; elsewhere the workers, while it serves.
/// Thread: the one that made the world.
class closure_service {
public:
  /// Errors: as `cluster_coordinator`.
  closure_service(troupe::strategy& strategy, coordinator_options options);

  /// Cancels what is queued, waits for what runs, and lets all processes end.
  ~closure_service();

  closure_service(const closure_service&) = delete;
  closure_service& operator=(const closure_service&) = delete;

  [[nodiscard]] troupe::strategy& strategy() const { return strategy_; }

  [[nodiscard]] troupe::world& world() const { return world_; }

  [[nodiscard]] bool leads() const { return leads_; }

  [[nodiscard]] uint32_t workers() const { return workers_; }

  [[nodiscard]] closure_registry& registry() { return *registry_; }

  /// A new instance of what each worker has of its own. @param pass As in `worker_resource`.
  [[nodiscard]] worker_resource new_instance(uint32_t resource, uint32_t pass) {
    auto instance = instances_->begin();
    return {resource, *instance, pass, instance};
  }

  void schedule(const std::string& function, std::vector<closure_argument> arguments,
                std::shared_ptr<closure_outcome> outcome);
  void join(job_time timeout);
  [[nodiscard]] bool done();
  void serve(const std::stop_token& stop);

  /// Refuses calls in functions that are scheduled, and where the coordinator does not lead.
  /// Errors: throws `failure` with wrong_context.
  void check_call(std::string_view call) const;

  /// Refuses a function or an input of another coordinator. @param name Names it in the error.
  /// Errors: throws `failure` with invalid_argument.
  void check_own(const closure_service* owner, std::string_view name) const;

private:
  using owner_list = std::vector<variable_owner_actor>;

  [[nodiscard]] bool stands_here(const std::string& name);
  [[nodiscard]] bool ask(bool until_all_are_done, job_time timeout);
  [[nodiscard]] job_time start_delay_of(uint32_t worker) const;
  void spawn_workers();
  void end_workers();
  void watch_owners();
  /// Owners, as `viewer` knows them, of variables that were made since the last call.
  [[nodiscard]] owner_list owners(const std::string& viewer);

  troupe::strategy& strategy_;
  troupe::world& world_;
  troupe::placement* placement_; ///< Null: all stand here.
  coordinator_options options_;
  bool leads_;
  uint32_t workers_;
  std::vector<uint32_t> workers_here_;
  std::shared_ptr<closure_registry> registry_ = std::make_shared<closure_registry>();
  std::shared_ptr<queue_gauge> gauge_ = std::make_shared<queue_gauge>();
  std::shared_ptr<instances_in_use> instances_ = std::make_shared<instances_in_use>();
  std::shared_ptr<const closure_waiter> waiter_;
  size_t watched_ = 0;            ///< How many variables have owners that are watched.
  coordinator_actor coordinator_; ///< Null until it is needed, where it does not lead.
  std::vector<closure_worker_actor> spawned_;
};

} // namespace troupe
