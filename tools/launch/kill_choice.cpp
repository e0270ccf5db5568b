// SPDX-License-Identifier: Apache-2.0
// Words, and draws.
#include "tools/launch/kill_choice.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

namespace troupe {

namespace {

std::vector<size_t> workers_but_the_chief(std::span<const launch_task> tasks) {
  std::vector<size_t> found;
  auto has_chief = std::ranges::count(tasks, "chief", &launch_task::type) > 0;
  for (size_t task = 0; task < tasks.size(); ++task)
    if (tasks[task].type == "worker" && (has_chief || tasks[task].index > 0)) found.push_back(task);
  return found;
}

std::vector<size_t> named_tasks(std::span<const launch_task> tasks, std::string_view word) {
  std::vector<size_t> found;
  for (size_t task = 0; task < tasks.size(); ++task)
    if (tasks[task].type == word || tasks[task].name() == word) found.push_back(task);
  return found;
}

} // namespace

expected<kill_choice> kill_choice::among(std::span<const launch_task> tasks,
                                         const std::string& words, uint64_t seed) {
  if (words.empty()) {
    auto found = workers_but_the_chief(tasks);
    if (!found.empty()) return kill_choice{std::move(found), seed};
    return fail(errc::invalid_argument,
                "--kill-every would kill workers other than the chief, and there is none; start "
                "more with -n, or name tasks with --kill-tasks");
  }
  std::vector<size_t> all;
  for (std::string_view left = words; !left.empty();) {
    auto word = left.substr(0, left.find(','));
    left.remove_prefix(std::min(left.size(), word.size() + 1));
    auto found = named_tasks(tasks, word);
    if (found.empty())
      return fail(errc::invalid_argument,
                  fmt::format("--kill-tasks: no task of this job is '{}'; say types or names of "
                              "tasks, as in worker,ps:0",
                              word));
    all.insert(all.end(), found.begin(), found.end());
  }
  std::ranges::sort(all);
  auto twice = std::ranges::unique(all);
  all.erase(twice.begin(), twice.end());
  return kill_choice{std::move(all), seed};
}

std::optional<size_t> kill_choice::draw(const std::function<bool(size_t)>& runs) {
  std::vector<size_t> running;
  std::ranges::copy_if(tasks_, std::back_inserter(running), runs);
  if (running.empty()) return std::nullopt;
  return running[numbers_() % running.size()];
}

std::string kill_choice::described(std::span<const launch_task> tasks) const {
  return fmt::format("one of {}, with --kill-seed {}", task_ranges(tasks, tasks_), seed_);
}

} // namespace troupe
