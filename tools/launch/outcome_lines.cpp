// SPDX-License-Identifier: Apache-2.0
// Writes the lines about ends of tasks.
#include "tools/launch/outcome_lines.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <vector>

namespace troupe {

namespace {

std::string counted(size_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

// "worker:2 failed: exit code 5"
std::string failure_text(const launch_outcome& outcome, size_t task) {
  return fmt::format("{} failed: {}", outcome.tasks().name(task),
                     to_string(*outcome.tasks()[task].end));
}

std::string restarts_left_text(const launch_outcome& outcome, size_t task) {
  return fmt::format("{} left", counted(outcome.restarts_left(task), "restart is", "restarts are"));
}

std::string others_text(const launch_outcome& outcome) {
  const auto others = outcome.first_failure()->others;
  if (others == 0) return {};
  auto text = fmt::format("; {} ended", counted(others, "other was", "others were"));
  if (outcome.killed_count() > 0)
    text += fmt::format(", {} of them by SIGKILL after {:g} s", outcome.killed_count(),
                        seconds(outcome.grace()));
  return text;
}

// Names the task that was missing first when the job failed; empty if none was.
std::string missing_text(const launch_outcome& outcome) {
  const auto& failed = *outcome.first_failure();
  const auto failure = *outcome.tasks()[failed.task].end;
  for (const auto& [task, time] : outcome.early_ends()) {
    const auto end = *outcome.tasks()[task].end;
    const auto name = outcome.tasks().name(task);
    // The end of the whole job may reach a worker a moment before the chief.
    const auto ended_with_job = end.signal == 0 && failure.signal == 0
                                && end.exit_code == failure.exit_code
                                && failed.time - time <= outcome.grace();
    if (!end.is_success() && !ended_with_job)
      return fmt::format(", when the job had lost {}: {}", name, to_string(end));
    if (end.is_success() && failure.misses_others())
      return fmt::format(", when {} had left the job: {}", name, to_string(end));
  }
  return {};
}

} // namespace

std::string ending_notice(const launch_outcome& outcome) {
  const auto running = outcome.tasks().running_count();
  const auto& failure = outcome.first_failure();
  if (outcome.restarts()) {
    auto when = running == 0
                  ? std::string{}
                  : fmt::format(" when {} ended", counted(running, "other has", "others have"));
    return fmt::format("{}; all tasks are started again{}, {}",
                       failure_text(outcome, failure->task), when,
                       restarts_left_text(outcome, failure->task));
  }
  if (running == 0) return {};
  if (failure) {
    return fmt::format("{}; ending {}", failure_text(outcome, failure->task),
                       counted(running, "other task", "other tasks"));
  }
  return fmt::format("{}: ending {}; tasks that are left after {:g} s are killed",
                     signal_name(outcome.end_request()->signal), counted(running, "task", "tasks"),
                     seconds(outcome.grace()));
}

std::string restart_notice(const launch_outcome& outcome, size_t task) {
  return fmt::format("{}; it is started again, {}", failure_text(outcome, task),
                     restarts_left_text(outcome, task));
}

std::string spare_notice(const launch_outcome& outcome, size_t task) {
  return fmt::format("{}; {}", failure_text(outcome, task),
                     outcome.tasks().is_evaluator(task)
                       ? "the others go on without it"
                       : "it is up to the others whether they go on without it");
}

std::string given_up_notice(const launch_outcome& outcome, size_t task) {
  return fmt::format("{} is stopped, as by SIGSTOP, and the job is over: it is killed after {:g} s",
                     outcome.tasks().name(task), seconds(outcome.grace()));
}

std::string waiting_notice(const launch_outcome& outcome) {
  const auto& tasks = outcome.tasks();
  std::vector<std::string> names;
  for (size_t task = 0; task < tasks.size(); ++task)
    if (!tasks.has_ended(task) && !tasks[task].is_given_up && !tasks.serves(task))
      names.push_back(tasks.name(task));
  return names.empty() ? ""
                       : fmt::format("the job is over; waiting for {}", fmt::join(names, ", "));
}

std::string summary_of(const launch_outcome& outcome) {
  if (!outcome.first_failure()) return {};
  const auto& failed = *outcome.first_failure();
  const auto& tasks = outcome.tasks();
  const auto end = *tasks[failed.task].end;
  if (const auto& request = outcome.end_request()) {
    return fmt::format("ended by {} after {:.1f} s; {} was the first: {}",
                       signal_name(request->signal), seconds(request->time),
                       tasks.name(failed.task), to_string(end));
  }
  std::string_view hint;
  if (end.signal == SIGKILL)
    hint = tasks[failed.task].is_killed_for_trial ? ", as --kill-every asks"
                                                  : ", as the kernel sends when memory runs out";
  auto is_first = std::ranges::all_of(
    outcome.early_ends(), [&](const auto& early) { return tasks[early.task].end->is_success(); });
  return fmt::format("{} failed{}: {}{} after {:.1f} s{}{}", tasks.name(failed.task),
                     is_first ? " first" : "", to_string(end), hint, seconds(failed.time),
                     missing_text(outcome), others_text(outcome));
}

} // namespace troupe
