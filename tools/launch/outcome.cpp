// SPDX-License-Identifier: Apache-2.0
// Judging ends and putting them into words.
#include "tools/launch/outcome.hpp"

#include "messages/assert.hpp"
#include "tools/exit_codes.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string counted(size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
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

launch_outcome::launch_outcome(std::vector<launch_task> tasks, duration grace)
  : tasks_(std::move(tasks)), grace_(grace), ends_(tasks_.size()) {}

launch_outcome::reaction launch_outcome::on_end(size_t task, task_end end, duration time) {
  TROUPE_ASSERT(!ends_[task], task);
  ends_[task] = end;
  if (first_) return reaction::none;
  auto is_expected = servers_told_ && tasks_[task].type == "ps";
  if (!end.is_success() && !is_expected) {
    first_ = task;
    failed_at_ = time;
    running_at_failure_ = running_count();
    return reaction::end_others;
  }
  auto is_needless = [this](size_t each) { return has_ended(each) || tasks_[each].type == "ps"; };
  for (size_t each = 0; each < tasks_.size(); ++each)
    if (!is_needless(each)) return reaction::none;
  auto has_servers = running_count() > 0 && !servers_told_;
  return has_servers ? reaction::end_servers : reaction::none;
}

void launch_outcome::on_request(int signal, duration time) {
  if (request_ != 0 || first_) return;
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
  if (!first_) return 0;
  auto end = *ends_[*first_];
  // SIGKILL was our word; why it had to end was another's.
  if (request_ != 0 && killed_ > 0 && end.signal == SIGKILL) return exit_code_of_signal(request_);
  return end.signal == 0 ? end.exit_code : exit_code_of_signal(end.signal);
}

std::string launch_outcome::notice() const {
  if (running_count() == 0) return {};
  if (first_) {
    return fmt::format("{} failed: {}; ending {}", tasks_[*first_].name(),
                       to_string(*ends_[*first_]),
                       counted(running_count(), "other task", "other tasks"));
  }
  return fmt::format("{}: ending {}; who is left after {:g} s is killed", signal_name(request_),
                     counted(running_count(), "task", "tasks"), seconds(grace_));
}

std::string launch_outcome::others_text() const {
  std::string text;
  if (running_at_failure_ > 0)
    text = fmt::format("; {} ended", counted(running_at_failure_, "other was", "others were"));
  if (killed_ > 0 && running_at_failure_ > 0)
    text += fmt::format(", {} of them by SIGKILL after {:g} s", killed_, seconds(grace_));
  return text;
}

std::string launch_outcome::summary() const {
  if (!first_) return {};
  auto name = tasks_[*first_].name();
  auto end = *ends_[*first_];
  if (request_ != 0) {
    return fmt::format("ended by {} after {:.1f} s; {} was the first: {}", signal_name(request_),
                       seconds(requested_at_), name, to_string(end));
  }
  auto hint = end.signal == SIGKILL ? ", as the kernel sends when memory runs out" : "";
  return fmt::format("{} failed first: {}{} after {:.1f} s{}", name, to_string(end), hint,
                     seconds(failed_at_), others_text());
}

} // namespace troupe
