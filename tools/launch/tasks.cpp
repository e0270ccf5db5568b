// SPDX-License-Identifier: Apache-2.0
// Writes names of tasks, TF_CONFIG and environments.
#include "tools/launch/tasks.hpp"

#include "actors/net/host_port.hpp"
#include "messages/errors/assert.hpp"
#include "strategies/cluster/cluster_spec.hpp"
#include "strategies/cluster/launcher_notice.hpp"
#include "strategies/cluster/task_types.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace troupe {

namespace {

bool sets(const std::string& line, std::string_view name) {
  return line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=';
}

} // namespace

std::string launch_task::name() const {
  return fmt::format("{}:{}", type, index);
}

std::string launch_task::log_name() const {
  return fmt::format("{}-{}.log", type, index);
}

expected<launch_task> parse_task_name(std::string_view text) {
  auto colon = text.find(':');
  auto type = text.substr(0, colon);
  auto index = colon == text.npos && type == "chief"
                 ? expected<uint64_t>{0}
                 : parse_count(colon == text.npos ? "" : text.substr(colon + 1), task_index_max);
  if (!is_task_type(type) || !index)
    return fail(errc::invalid_argument,
                fmt::format("'{}' is no task; say a type and an index, as in worker:1", text));
  return launch_task{.type = std::string{type}, .index = static_cast<uint32_t>(*index)};
}

bool is_worker_but_no_chief(std::span<const launch_task> tasks, const launch_task& task) {
  return task.type == "worker"
         && (task.index > 0 || std::ranges::count(tasks, "chief", &launch_task::type) > 0);
}

std::string task_ranges(std::span<const launch_task> tasks, std::vector<size_t> numbers) {
  // Tasks of other launchers are numbered as they came.
  std::ranges::sort(numbers, {}, [&](size_t number) {
    auto first = std::ranges::find(tasks, tasks[number].type, &launch_task::type);
    return std::pair{first - tasks.begin(), tasks[number].index};
  });
  std::string text;
  for (size_t first = 0, end = 0; first < numbers.size(); first = end) {
    const auto& task = tasks[numbers[first]];
    auto continues_range = [&](size_t at) {
      const auto& next = tasks[numbers[at]];
      return next.type == task.type && next.index == task.index + (at - first);
    };
    for (end = first + 1; end < numbers.size() && continues_range(end);)
      ++end;
    auto is_same_type = first > 0 && tasks[numbers[first - 1]].type == task.type;
    if (is_same_type)
      text += fmt::format(",{}", task.index);
    else
      text += fmt::format("{}{}", text.empty() ? "" : " ", task.name());
    if (end - first > 1) text += fmt::format("-{}", tasks[numbers[end - 1]].index);
  }
  return text;
}

size_t task_count(const launch_options& options) {
  return (options.chief ? 1U : 0U) + size_t{options.workers} + options.parameter_servers
         + (options.evaluator ? 1U : 0U);
}

std::vector<launch_task> launch_tasks(const launch_options& options,
                                      std::span<const uint16_t> ports) {
  TROUPE_ASSERT(ports.size() == task_count(options), ports.size());
  std::vector<launch_task> tasks;
  auto add = [&](const char* type, uint32_t count) {
    for (uint32_t index = 0; index < count; ++index)
      tasks.push_back({type, index, ports[tasks.size()]});
  };
  add("chief", options.chief ? 1 : 0);
  add("worker", options.workers);
  add("ps", options.parameter_servers);
  add("evaluator", options.evaluator ? 1 : 0);
  return tasks;
}

std::string tf_config(std::span<const launch_task> tasks, const launch_task& self) {
  nlohmann::ordered_json cluster;
  for (const auto& task : tasks)
    cluster[task.type].push_back(fmt::format("127.0.0.1:{}", task.port));
  nlohmann::ordered_json config{{"cluster", cluster},
                                {"task", {{"type", self.type}, {"index", self.index}}}};
  return config.dump();
}

std::vector<std::string> task_environment(std::span<const std::string> inherited,
                                          std::span<const launch_task> tasks,
                                          const launch_task& self, const std::string& job_id,
                                          std::optional<uint32_t> restarts, size_t processors,
                                          const std::string& launcher) {
  std::vector<std::string> lines;
  auto is_alone = self.port == 0; // the others are started elsewhere
  auto is_replaced = [&](const std::string& line) {
    return (sets(line, "TF_CONFIG") && !is_alone)
           || (sets(line, "TROUPE_JOB_ID") && !job_id.empty())
           || (sets(line, "TROUPE_RESTART_COUNT") && (!is_alone || restarts))
           || sets(line, launcher_variable);
  };
  std::ranges::remove_copy_if(inherited, std::back_inserter(lines), is_replaced);
  if (!is_alone) lines.push_back("TF_CONFIG=" + tf_config(tasks, self));
  if (!job_id.empty()) lines.push_back("TROUPE_JOB_ID=" + job_id);
  if (restarts) lines.push_back(fmt::format("TROUPE_RESTART_COUNT={}", *restarts));
  if (!launcher.empty()) lines.push_back(fmt::format("{}={}", launcher_variable, launcher));
  auto sets_threads = [](const std::string& line) { return sets(line, "OMP_NUM_THREADS"); };
  if (!is_alone && std::ranges::none_of(inherited, sets_threads))
    lines.push_back(
      fmt::format("OMP_NUM_THREADS={}", std::max<size_t>(1, processors / tasks.size())));
  return lines;
}

} // namespace troupe
