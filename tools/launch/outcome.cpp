// SPDX-License-Identifier: Apache-2.0
// Judges ends of tasks.
#include "tools/launch/outcome.hpp"

#include "messages/errors/assert.hpp"
#include "strategies/jobs/exit_codes.hpp"

#include <csignal>
#include <utility>

namespace troupe {

launch_outcome::launch_outcome(std::vector<launch_task> tasks, duration grace, uint32_t restarts,
                               const spared_tasks& spared)
  : tasks_(std::move(tasks), spared), grace_(grace), budget_(restarts, grace) {}

launch_outcome::reaction launch_outcome::on_end(size_t task, task_end end, duration time) {
  TROUPE_ASSERT(!tasks_.has_ended(task), task);
  tasks_[task].end = end;
  if (failure_) return reaction::none;
  auto is_expected = tasks_[task].is_given_up
                     || (tasks_.serves(task)
                         && (servers_told_ || (tasks_.can_spare(task) && tasks_.has_finished())));
  auto is_spared = tasks_.is_spared(task, end);
  auto leaves_early = end.is_success() && is_spared && !tasks_.is_evaluator(task);
  if (leaves_early) early_ends_.push_back({task, time});
  if (end.is_success() || is_expected)
    return has_idle_servers() ? reaction::end_servers : reaction::none;
  if (is_spared)
    return tasks_.is_evaluator(task) ? on_evaluator_lost(task) : on_spared_lost(task, end, time);
  auto again = try_again(task, end, time);
  if (again && again != reaction::restart) return *again;
  failure_ = {
    .task = task, .time = time, .others = tasks_.running_count(), .is_retried = again.has_value()};
  return again.value_or(reaction::end_others);
}

launch_outcome::reaction launch_outcome::on_evaluator_lost(size_t task) {
  if (request_) return reaction::none; // it was asked to end, as all tasks were
  tasks_[task].is_due = budget_.take_for_evaluator();
  return tasks_[task].is_due ? reaction::start_again : reaction::spare;
}

launch_outcome::reaction launch_outcome::on_spared_lost(size_t task, task_end end, duration time) {
  if (auto again = try_again(task, end, time)) return *again;
  if (request_) // it was asked to end, as all tasks were
    return has_idle_servers() ? reaction::end_servers : reaction::none;
  early_ends_.push_back({task, time});
  return reaction::spare;
}

std::optional<launch_outcome::reaction> launch_outcome::try_again(size_t task, task_end end,
                                                                  duration time) {
  if (end.is_misuse() || request_) return std::nullopt;
  auto& restarted_at = tasks_[task].restarted_at;
  const auto answer = budget_.take(end, time, restarted_at);
  if (answer == restart_budget::answer::refused) return std::nullopt;
  if (!tasks_.can_spare(task)) return reaction::restart;
  // A task that came back to a job that is ending would fail again at once.
  auto comes_too_early = answer == restart_budget::answer::uncounted && restarted_at.has_value();
  restarted_at = time;
  tasks_[task].is_due = true;
  return comes_too_early ? reaction::start_again_later : reaction::start_again;
}

void launch_outcome::on_start(size_t task) {
  tasks_[task].end.reset();
  tasks_[task].is_due = false;
  tasks_[task].is_killed_for_trial = false;
}

void launch_outcome::on_restart() {
  tasks_.on_restart();
  budget_.on_restart();
  early_ends_.clear();
  failure_.reset();
  killed_ = 0;
}

void launch_outcome::on_request(int signal, duration time) {
  if (request_ || (failure_ && !failure_->is_retried)) return;
  if (failure_) failure_->is_retried = false;
  request_ = {.signal = signal, .time = time};
}

bool launch_outcome::is_needless(size_t task) const {
  return tasks_.serves(task) && tasks_.has_finished();
}

bool launch_outcome::has_idle_servers() const {
  return tasks_.only_servers_run() && !servers_told_;
}

int launch_outcome::exit_code() const {
  if (!failure_) return 0;
  auto end = *tasks_[failure_->task].end;
  // The request is why the launcher killed the task.
  if (request_ && killed_ > 0 && end.signal == SIGKILL)
    return exit_code_of_signal(request_->signal);
  return end.signal == 0 ? end.exit_code : exit_code_of_signal(end.signal);
}

uint32_t launch_outcome::restarts_left(size_t task) const {
  return tasks_.is_evaluator(task) && !tasks_.is_alone() ? budget_.left_for_evaluators()
                                                         : budget_.left();
}

} // namespace troupe
