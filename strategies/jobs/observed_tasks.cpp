// SPDX-License-Identifier: Apache-2.0
// Spawns the task observer of a job, and talks to it.
#include "strategies/jobs/observed_tasks.hpp"

#include "actors/training/task_observer.hpp"
#include "actors/world/completion.hpp"

#include <caf/send.hpp>

#include <utility>

namespace troupe {

observed_tasks::observed_tasks(world& world, job_time period, std::string here,
                               std::map<uint32_t, std::string> others,
                               std::function<void(const flight_records&)> on_records)
  : world_(world), view_(std::make_shared<task_view>(std::move(here), std::move(others))) {
  task_observer_config config{
    .view = view_, .period = period, .on_records = std::move(on_records), .world = &world_};
  observer_ = world_.system().spawn(task_observer, std::move(config));
  world_.introduce(observer_.id(), "task observer");
}

observed_tasks::~observed_tasks() {
  end_actor(world_, observer_);
}

std::function<void(uint32_t, const task_reporter_actor&)> observed_tasks::adder() const {
  return [observer = observer_](uint32_t number, const task_reporter_actor& reporter) {
    caf::anon_send(observer, observe_task{number, reporter});
  };
}

void observed_tasks::show(session_plan& plan) const {
  plan.tasks = view_;
  plan.collect_flight_records = [observer = observer_](const std::string& reason) {
    caf::anon_send(observer, collect_flight_records{reason});
  };
}

} // namespace troupe
