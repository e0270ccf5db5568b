// SPDX-License-Identifier: Apache-2.0
// Starts, signals and counts tasks.
#include "tools/launch/task_group.hpp"

#include "actors/policies/spin.hpp"

#include <algorithm>
#include <csignal>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

using boost::system::error_code;

std::vector<std::string> own_environment() {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line)
    lines.emplace_back(*line);
  return lines;
}

} // namespace

task_group::task_group(boost::asio::io_context& context, const launch_options& options,
                       std::vector<launch_task> tasks, std::string launcher, events events)
  : context_(context), options_(options), tasks_(std::move(tasks)), environment_(own_environment()),
    launcher_(std::move(launcher)), events_(std::move(events)) {}

void task_group::connect(std::vector<task_outlet> outlets) {
  for (auto& outlet : outlets) {
    auto task = members_.size();
    auto process = std::make_unique<running_task>(context_, std::move(outlet),
                                                  [this, task] { finish_if_silent(task); });
    members_.push_back(
      {.process = std::move(process), .pause_end = boost::asio::steady_timer{context_}});
  }
}

expected<void> task_group::start(size_t task) {
  auto& each = members_[task];
  each.now_in.enter(phase::running);
  auto restarts = options_.restarts > 0 ? std::optional{restarts_} : std::nullopt;
  auto environment = task_environment(environment_, tasks_, tasks_[task], options_.job_id, restarts,
                                      processors_of_this_process().processors, launcher_);
  return each.process->start(options_.program, environment);
}

void task_group::on_end(size_t task, std::optional<duration> pause, output_limit limit) {
  auto& each = members_[task];
  each.now_in.enter(phase::ended);
  each.pause = pause;
  each.process->limit_output(limit);
  finish_if_silent(task);
}

void task_group::finish_if_silent(size_t task) {
  auto& each = members_[task];
  if (each.now_in != phase::ended || !each.process->is_silent()) return;
  each.process->reap();
  if (!each.pause) return drop(task);
  each.now_in.enter(phase::waiting);
  each.pause_end.expires_after(*each.pause);
  each.pause_end.async_wait([this, task](error_code) { events_.on_due(task); });
}

void task_group::drop(size_t task) {
  members_[task].now_in.enter(phase::over);
  if (are_over()) events_.on_over();
}

void task_group::cancel_restarts() {
  for (auto& each : members_)
    each.pause.reset();
}

void task_group::on_restart() {
  ++restarts_;
  for (auto& each : members_)
    each.now_in.enter(phase::waiting);
}

void task_group::signal_all(int number) {
  for (auto& each : members_)
    each.process->signal_all(number);
}

void task_group::signal_each(int number) {
  for (auto& each : members_)
    each.process->signal_one(number);
}

void task_group::kill(output_limit limit) {
  for (auto& each : members_) {
    each.process->signal_all(SIGKILL);
    if (each.now_in == phase::ended) each.process->limit_output(limit);
  }
}

void task_group::resume() {
  for (auto& each : members_)
    each.process->resume();
}

bool task_group::are_over() const {
  return std::ranges::all_of(members_,
                             [](const member& each) { return each.now_in == phase::over; });
}

} // namespace troupe
