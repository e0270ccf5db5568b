// SPDX-License-Identifier: Apache-2.0
// The other processes of a job, as the first one looks at them.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/flight_lines.hpp"
#include "actors/observing/task_view.hpp"
#include "actors/world/world.hpp"
#include "strategies/optimizers/session_hook.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace troupe {

/// A task observer for the time of a job, and what hooks see of its work.
class observed_tasks {
public:
  /// @param period Between two looks. @param others Names of processes, by their numbers.
  /// @param on_records Called with flight records that were collected.
  observed_tasks(world& world, job_time period, std::string here,
                 std::map<uint32_t, std::string> others,
                 std::function<void(const flight_records&)> on_records);
  ~observed_tasks();

  observed_tasks(const observed_tasks&) = delete;
  observed_tasks& operator=(const observed_tasks&) = delete;

  /// Has a process looked at from now on. May outlast this object.
  [[nodiscard]] std::function<void(uint32_t number, const task_reporter_actor& reporter)>
  adder() const;

  /// Hooks see the processes, and may have flight records collected.
  void show(session_plan& plan) const;

private:
  world& world_;
  std::shared_ptr<task_view> view_;
  task_observer_actor observer_;
};

} // namespace troupe
