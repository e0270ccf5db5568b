// SPDX-License-Identifier: Apache-2.0
// Answers requests with the figures and the actors of the job.
#include "strategies/jobs/metrics_server_hook.hpp"

#include "actors/observing/exposition.hpp"
#include "actors/observing/task_view.hpp"
#include "actors/world/world.hpp"
#include "messages/errors/failure.hpp"

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
  tasks_ = plan.tasks;
  figures_ = {.step = plan.first_step};
  figures_.expect(plan.replicas);
}

// Only now is it sure that `end` will come.
void metrics_server_hook::after_create_session(const session_control&) {
  std::lock_guard guard{mutex_};
  observed_ = &world_->observatory();
}

void metrics_server_hook::on_open_step(const open_step& step) {
  std::lock_guard guard{mutex_};
  figures_.live = step.live;
  figures_.needed = step.needed;
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
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = page(prometheus_text)};
  if (path == "/actors") return {.content_type = "application/json", .body = page(actors_json)};
  if (others_) return others_(path);
  if (path == "/") return {.body = "a training job: /metrics for Prometheus, /actors as JSON\n"};
  return {.status = 404, .body = "there is /metrics and /actors\n"};
}

// This process and the others, while the job runs.
std::vector<task_sight> metrics_server_hook::look() const {
  if (observed_ == nullptr) return {};
  std::vector<task_sight> tasks;
  if (tasks_) tasks = tasks_->look();
  tasks.insert(tasks.begin(), look_here(*observed_, tasks_ ? tasks_->here() : ""));
  return tasks;
}

// Figures are copied under the lock, and written down without it. This process's look is the
// newest.
std::string metrics_server_hook::page(page_writer write) {
  std::unique_lock lock{mutex_};
  auto figures = figures_;
  auto tasks = look();
  lock.unlock();
  auto now = tasks.empty() ? job_time{0} : tasks.front().seen.value_or(job_time{0});
  return write(figures, tasks, now);
}

} // namespace troupe
