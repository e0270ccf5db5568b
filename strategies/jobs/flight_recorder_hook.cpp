// SPDX-License-Identifier: Apache-2.0
// When a flight record is written.
#include "strategies/jobs/flight_recorder_hook.hpp"

#include "actors/observing/flight_record.hpp"
#include "actors/world/world.hpp"

#include <fmt/format.h>

namespace troupe {

void flight_recorder_hook::record(const std::string& reason) {
  std::lock_guard guard{mutex_};
  if (observed_ == nullptr) return;
  auto saved = save_flight_record(*observed_, reason, path_);
  if (!say_) return;
  say_(saved ? fmt::format("what every actor did last stands in {}", path_.string())
             : saved.error().message);
}

void flight_recorder_hook::begin(session_plan& plan) {
  world_ = &plan.world;
}

// Only now is it sure that `end` will come.
void flight_recorder_hook::after_create_session(const session_control&) {
  std::lock_guard guard{mutex_};
  observed_ = &world_->observatory();
  crashes_.emplace(*observed_, path_);
}

void flight_recorder_hook::on_trouble(const std::string& what) {
  record(what);
}

void flight_recorder_hook::end(const job_report&) {
  std::lock_guard guard{mutex_};
  crashes_.reset();
  observed_ = nullptr;
}

} // namespace troupe
