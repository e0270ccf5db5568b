// SPDX-License-Identifier: Apache-2.0
// Finds the tasks that a user names, and draws among them.
#include "tools/launch/kill_choice.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

namespace troupe {

namespace {

template <class Predicate>
std::vector<size_t> positions_of(std::span<const launch_task> tasks, Predicate is_chosen) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < tasks.size(); ++i)
    if (is_chosen(tasks[i])) positions.push_back(i);
  return positions;
}

} // namespace

expected<kill_choice> kill_choice::among(std::span<const launch_task> tasks,
                                         const std::string& words, uint64_t seed) {
  if (words.empty()) {
    auto found = positions_of(
      tasks, [&](const launch_task& task) { return is_worker_but_no_chief(tasks, task); });
    if (!found.empty()) return kill_choice{std::move(found), seed};
    return fail(errc::invalid_argument,
                "--kill-every would kill workers other than the chief, and there is none; start "
                "more with -n, or name tasks with --kill-tasks");
  }
  std::vector<size_t> all;
  for (std::string_view left = words; !left.empty();) {
    auto word = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), word.size() + 1));
    auto found = positions_of(
      tasks, [&](const launch_task& task) { return task.type == word || task.name() == word; });
    if (found.empty())
      return fail(errc::invalid_argument,
                  fmt::format("--kill-tasks: no task of this job is '{}'; say types or names of "
                              "tasks, as in worker,ps:0",
                              word));
    all.insert(all.end(), found.begin(), found.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return kill_choice{std::move(all), seed};
}

std::optional<size_t> kill_choice::draw(const std::function<bool(size_t)>& is_running) {
  std::vector<size_t> running;
  std::ranges::copy_if(tasks_, std::back_inserter(running), is_running);
  if (running.empty()) return std::nullopt;
  return running[numbers_() % running.size()];
}

std::string kill_choice::described(std::span<const launch_task> tasks) const {
  return fmt::format("one of {}, with --kill-seed {}", task_ranges(tasks, tasks_), seed_);
}

} // namespace troupe
