// SPDX-License-Identifier: Apache-2.0
// Judges ends of tasks, and writes the lines about them.
#include "tools/launch/outcome.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/assert.hpp"
#include "strategies/jobs/exit_codes.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace troupe {

namespace {

std::string counted(size_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

// Whether the task says that its command is wrong: it would fail again.
bool is_misuse(task_end end) {
  return end.signal == 0 && end.exit_code == static_cast<int>(exit_code::usage);
}

// Whether the task says that it ended because others are missing.
bool misses_others(task_end end) {
  return end.signal == 0
         && (end.exit_code == static_cast<int>(exit_code::no_cluster)
             || end.exit_code == static_cast<int>(exit_code::lost_peer));
}

} // namespace

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

std::string to_string(task_end end) {
  if (end.signal == 0) return fmt::format("exit code {}", end.exit_code);
  return fmt::format("signal {} ({})", end.signal, signal_name(end.signal));
}

launch_outcome::launch_outcome(std::vector<launch_task> tasks, duration grace, uint32_t restarts,
                               const spared_tasks& spared)
  : tasks_(std::move(tasks)), grace_(grace), always_spared_(spared), spared_(spared),
    restarts_left_(restarts), evaluator_restarts_left_(restarts), restarted_at_(tasks_.size()),
    ends_(tasks_.size()), given_up_(tasks_.size()), killed_for_trial_(tasks_.size()) {}

void launch_outcome::on_spared(const spared_tasks& spared) {
  spared_.workers |= spared.workers;
  spared_.parameter_servers |= spared.parameter_servers;
}

bool launch_outcome::can_spare(size_t task) const {
  return is_evaluator(task) || is_worker_but_no_chief(tasks_, tasks_[task])
         || (tasks_[task].type == "ps" && spared_.parameter_servers);
}

// Whether the job is over without this task. A worker that was started again may come too late, and
// find no task that it could work for.
bool launch_outcome::serves(size_t task) const {
  return tasks_[task].type == "ps" || restarted_at_[task].has_value();
}

bool launch_outcome::is_spared(size_t task, task_end end) const {
  if (is_alone()) return false;
  auto is_ps = tasks_[task].type == "ps";
  auto is_spare = is_evaluator(task) || ((is_ps || spared_.workers) && can_spare(task));
  return is_spare && !is_misuse(end);
}

launch_outcome::reaction launch_outcome::on_evaluator_lost() {
  if (request_ != 0) return reaction::none; // it was asked to end, as all tasks were
  if (evaluator_restarts_left_ == 0) return reaction::spare;
  --evaluator_restarts_left_;
  return reaction::start_again;
}

launch_outcome::reaction launch_outcome::on_spared_lost(size_t task, task_end end, duration time) {
  if (auto again = try_again(task, end, time)) return *again;
  if (request_ != 0) // it was asked to end, as all tasks were
    return has_idle_servers() ? reaction::end_servers : reaction::none;
  early_ends_.push_back({task, time});
  return reaction::spare;
}

bool launch_outcome::has_finished() const {
  for (size_t task = 0; task < tasks_.size(); ++task)
    if (!can_spare(task) && tasks_[task].type != "ps")
      return ends_[task] && ends_[task]->is_success();
  return false;
}

std::optional<launch_outcome::reaction> launch_outcome::try_again(size_t task, task_end end,
                                                                  duration time) {
  if (is_misuse(end) || request_ != 0) return std::nullopt;
  auto is_counted = is_consequence(task, end, time);
  if (!is_counted) {
    if (restarts_left_ == 0) return std::nullopt;
    --restarts_left_;
    counted_restart_at_ = time;
  }
  restarts_ = !can_spare(task);
  if (restarts_) return reaction::restart;
  // A task that came back to a job that is ending would fail again at once.
  auto comes_too_early = is_counted && restarted_at_[task].has_value();
  restarted_at_[task] = time;
  return comes_too_early ? reaction::start_again_later : reaction::start_again;
}

// Whether an end is the consequence of a loss that has cost a restart already. A task that ends
// because another one is missing says so by its exit code; a task that is killed, or that fails
// after its own restart, is another loss.
bool launch_outcome::is_consequence(size_t task, task_end end, duration time) const {
  auto is_recent = [&](const auto& past) { return past && time - *past <= grace_; };
  return end.signal == 0 && is_recent(counted_restart_at_)
         && (misses_others(end) || !is_recent(restarted_at_[task]));
}

void launch_outcome::on_restart() {
  ends_.assign(tasks_.size(), std::nullopt);
  given_up_.assign(tasks_.size(), false);
  first_failure_.reset();
  restarts_ = false;
  restarted_at_.assign(tasks_.size(), std::nullopt);
  counted_restart_at_.reset();
  spared_ = always_spared_;
  early_ends_.clear();
  running_at_failure_ = killed_ = 0;
}

launch_outcome::reaction launch_outcome::on_end(size_t task, task_end end, duration time) {
  TROUPE_ASSERT(!ends_[task], task);
  ends_[task] = end;
  if (first_failure_ || restarts_) return reaction::none;
  auto is_expected
    = given_up_[task] || (serves(task) && (servers_told_ || (can_spare(task) && has_finished())));
  auto leaves_early = end.is_success() && is_spared(task, end) && !is_evaluator(task);
  if (leaves_early) early_ends_.push_back({task, time});
  if (end.is_success() || is_expected)
    return has_idle_servers() ? reaction::end_servers : reaction::none;
  if (is_spared(task, end))
    return is_evaluator(task) ? on_evaluator_lost() : on_spared_lost(task, end, time);
  auto again = try_again(task, end, time);
  if (again && again != reaction::restart) return *again;
  first_failure_ = task;
  failed_at_ = time;
  running_at_failure_ = running_count();
  return again.value_or(reaction::end_others);
}

bool launch_outcome::has_idle_servers() const {
  for (size_t task = 0; task < tasks_.size(); ++task)
    if (!has_ended(task) && !serves(task)) return false;
  return running_count() > 0 && !servers_told_;
}

void launch_outcome::on_request(int signal, duration time) {
  if (request_ != 0 || (first_failure_ && !restarts_)) return;
  restarts_ = false;
  request_ = signal;
  requested_at_ = time;
}

void launch_outcome::on_kill() {
  killed_ = running_count();
}

size_t launch_outcome::running_count() const {
  return static_cast<size_t>(
    std::ranges::count(ends_, false, [](const auto& end) { return end.has_value(); }));
}

int launch_outcome::exit_code() const {
  if (!first_failure_) return 0;
  auto end = *ends_[*first_failure_];
  // The request is why the launcher killed the task.
  if (request_ != 0 && killed_ > 0 && end.signal == SIGKILL) return exit_code_of_signal(request_);
  return end.signal == 0 ? end.exit_code : exit_code_of_signal(end.signal);
}

std::string launch_outcome::restart_notice(size_t task) const {
  auto left = is_evaluator(task) && !is_alone() ? evaluator_restarts_left_ : restarts_left_;
  return fmt::format("{} failed: {}; it is started again, {} left", tasks_[task].name(),
                     to_string(*ends_[task]), counted(left, "restart is", "restarts are"));
}

std::string launch_outcome::spare_notice(size_t task) const {
  return fmt::format("{} failed: {}; {}", tasks_[task].name(), to_string(*ends_[task]),
                     is_evaluator(task) ? "the others go on without it"
                                        : "it is up to the others whether they go on without it");
}

std::string launch_outcome::given_up_notice(size_t task) const {
  return fmt::format("{} is stopped, as by SIGSTOP, and the job is over: it is killed after {:g} s",
                     tasks_[task].name(), seconds(grace_));
}

std::string launch_outcome::waiting_notice() const {
  std::vector<std::string> names;
  for (size_t task = 0; task < tasks_.size(); ++task)
    if (!has_ended(task) && !given_up_[task] && !serves(task)) names.push_back(tasks_[task].name());
  return names.empty() ? ""
                       : fmt::format("the job is over; waiting for {}", fmt::join(names, ", "));
}

std::string launch_outcome::notice() const {
  if (restarts_) {
    auto when
      = running_count() == 0
          ? std::string{}
          : fmt::format(" when {} ended", counted(running_count(), "other has", "others have"));
    return fmt::format("{} failed: {}; all tasks are started again{}, {} left",
                       tasks_[*first_failure_].name(), to_string(*ends_[*first_failure_]), when,
                       counted(restarts_left_, "restart is", "restarts are"));
  }
  if (running_count() == 0) return {};
  if (first_failure_) {
    return fmt::format("{} failed: {}; ending {}", tasks_[*first_failure_].name(),
                       to_string(*ends_[*first_failure_]),
                       counted(running_count(), "other task", "other tasks"));
  }
  return fmt::format("{}: ending {}; tasks that are left after {:g} s are killed",
                     signal_name(request_), counted(running_count(), "task", "tasks"),
                     seconds(grace_));
}

std::string launch_outcome::others_text() const {
  std::string text;
  if (running_at_failure_ > 0)
    text = fmt::format("; {} ended", counted(running_at_failure_, "other was", "others were"));
  if (killed_ > 0 && running_at_failure_ > 0)
    text += fmt::format(", {} of them by SIGKILL after {:g} s", killed_, seconds(grace_));
  return text;
}

// Names the task that was missing first when the job failed; empty if none was.
std::string launch_outcome::missing_text() const {
  const auto failure = *ends_[*first_failure_];
  for (const auto& [task, time] : early_ends_) {
    const auto end = *ends_[task];
    const auto name = tasks_[task].name();
    // The end of the whole job may reach a worker a moment before the chief.
    const auto ended_with_job = end.signal == 0 && failure.signal == 0
                                && end.exit_code == failure.exit_code
                                && failed_at_ - time <= grace_;
    if (!end.is_success() && !ended_with_job)
      return fmt::format(", when the job had lost {}: {}", name, to_string(end));
    if (end.is_success() && misses_others(failure))
      return fmt::format(", when {} had left the job: {}", name, to_string(end));
  }
  return {};
}

std::string launch_outcome::summary() const {
  if (!first_failure_) return {};
  auto name = tasks_[*first_failure_].name();
  auto end = *ends_[*first_failure_];
  if (request_ != 0) {
    return fmt::format("ended by {} after {:.1f} s; {} was the first: {}", signal_name(request_),
                       seconds(requested_at_), name, to_string(end));
  }
  std::string_view hint;
  if (end.signal == SIGKILL)
    hint = killed_for_trial_[*first_failure_] ? ", as --kill-every asks"
                                              : ", as the kernel sends when memory runs out";
  auto is_first = std::ranges::all_of(
    early_ends_, [&](const auto& each) { return ends_[each.task]->is_success(); });
  return fmt::format("{} failed{}: {}{} after {:.1f} s{}{}", name, is_first ? " first" : "",
                     to_string(end), hint, seconds(failed_at_), missing_text(), others_text());
}

} // namespace troupe
