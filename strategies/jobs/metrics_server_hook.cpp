// SPDX-License-Identifier: Apache-2.0
// What is served.
#include "strategies/jobs/metrics_server_hook.hpp"

#include "actors/observing/exposition.hpp"
#include "actors/world/world.hpp"
#include "messages/failure.hpp"

#include <utility>

namespace troupe {

metrics_server_hook::metrics_server_hook(const http_server_options& options,
                                         http_server::handler others, http_news news)
  : others_(std::move(others)),
    server_(value_or_throw(http_server::start(
      options, [this](const std::string& path) { return answer(path); }, std::move(news)))) {}

void metrics_server_hook::begin(session_plan& plan) {
  std::lock_guard guard{mutex_};
  world_ = &plan.world;
  figures_ = {.step = plan.first_step};
}

// Only now is it sure that `end` will come.
void metrics_server_hook::after_create_session(const session_control&) {
  std::lock_guard guard{mutex_};
  observed_ = &world_->observatory();
}

void metrics_server_hook::after_step(const session_control&, const step_record& step) {
  std::lock_guard guard{mutex_};
  figures_.add(step);
}

void metrics_server_hook::end(const job_report&) {
  std::lock_guard guard{mutex_};
  observed_ = nullptr;
}

http_answer metrics_server_hook::answer(const std::string& path) {
  if (path == "/metrics")
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics()};
  if (path == "/actors") return {.content_type = "application/json", .body = actors()};
  if (others_) return others_(path);
  if (path == "/") return {.body = "a training job: /metrics for Prometheus, /actors as JSON\n"};
  return {.status = 404, .body = "there is /metrics and /actors\n"};
}

// Figures are copied under the lock, and written down without it.
std::string metrics_server_hook::metrics() {
  std::unique_lock guard{mutex_};
  auto figures = figures_;
  auto sights = observed_ != nullptr ? observed_->look() : std::vector<actor_sight>{};
  guard.unlock();
  return prometheus_text(figures, sights, look_at_process());
}

std::string metrics_server_hook::actors() {
  std::unique_lock guard{mutex_};
  auto now = observed_ != nullptr ? observed_->now() : job_time{0};
  auto sights = observed_ != nullptr ? observed_->look() : std::vector<actor_sight>{};
  guard.unlock();
  return actors_json(sights, now);
}

} // namespace troupe
