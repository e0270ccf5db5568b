// SPDX-License-Identifier: Apache-2.0
// A running job, for Prometheus, `troupe top` and any other HTTP client.
#pragma once

#include "actors/observing/http.hpp"
#include "actors/observing/job_figures.hpp"
#include "strategies/optimizers/session_hook.hpp"

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace troupe {

class observatory;
struct task_sight;

/// A job that runs for days is looked at from elsewhere. While a metrics_server_hook is there, it
/// answers
///
/// | path     | with                                                            |
/// |----------|-----------------------------------------------------------------|
/// | /metrics | figures of the job, its replicas and its actors, for Prometheus |
/// | /actors  | every actor with its mailbox and its last message, as JSON      |
/// | /        | a line that says so, or what the program has there              |
///
/// of all processes, where `training_options::observe_period` has the others looked at,
/// and 404 else; before and after the job with what it has. Training does not wait for clients.
class metrics_server_hook final : public session_hook {
public:
  /// Listens from now on. @param others Answers all other paths; empty: they are 404.
  /// @param news The program's events, at a path of their own. Both outlive the hook.
  /// Errors: throws `failure` as `http_server::start`.
  explicit metrics_server_hook(const http_server_options& options = {},
                               http_server::handler others = {}, http_news news = {});

  /// Where: "127.0.0.1:9464".
  [[nodiscard]] std::string endpoint() const { return server_->endpoint(); }

  void begin(session_plan& plan) override;
  void after_create_session(const session_control& session) override;
  void on_open_step(const open_step& step) override;
  void after_step(const session_control& session, const step_record& step) override;
  void end(const job_report& report) override;

private:
  using page_writer
    = std::string (*)(const job_figures& job, std::span<const task_sight> tasks, job_time now);

  [[nodiscard]] std::vector<task_sight> look() const; ///< With the lock held.
  [[nodiscard]] http_answer answer(const std::string& path);
  [[nodiscard]] std::string page(page_writer write);

  http_server::handler others_;
  world* world_ = nullptr;
  std::mutex mutex_;
  const observatory* observed_ = nullptr;  ///< While the job runs.
  std::shared_ptr<const task_view> tasks_; ///< Null if there are no others.
  job_figures figures_;
  std::unique_ptr<http_server> server_; ///< Last: its thread uses the others.
};

} // namespace troupe
