// SPDX-License-Identifier: Apache-2.0
// Kills tasks at intervals.
#include "tools/launch/trial_kills.hpp"

#include "actors/recording/seconds.hpp"

#include <csignal>
#include <fmt/format.h>
#include <utility>

namespace troupe {

trial_kills::trial_kills(boost::asio::io_context& context, kill_plan plan, launch_outcome& outcome,
                         task_group& tasks, const launch_ending& ending, task_terminal& terminal)
  : next_kill_(context), plan_(std::move(plan)), outcome_(outcome), tasks_(tasks), ending_(ending),
    terminal_(terminal) {}

void trial_kills::start() {
  terminal_.tell(fmt::format("kills a task every {:g} s: {}", seconds(plan_.interval),
                             plan_.choice.described(tasks_.tasks())));
  kill_one_later();
}

void trial_kills::kill_one_later() {
  next_kill_.expires_after(plan_.interval);
  next_kill_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled || ending_.is_over()) return;
    kill_one();
    kill_one_later();
  });
}

void trial_kills::kill_one() {
  const auto& tasks = outcome_.tasks();
  if (ending_.has_begun() || tasks.has_finished()) return;
  auto task = plan_.choice.draw([&](size_t each) { return !tasks.has_ended(each); });
  if (!task) return;
  terminal_.tell(fmt::format("kills {} (SIGKILL), as --kill-every asks", tasks.name(*task)));
  outcome_.on_trial_kill(*task);
  tasks_[*task].signal_all(SIGKILL);
}

} // namespace troupe
