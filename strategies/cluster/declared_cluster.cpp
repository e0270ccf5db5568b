// SPDX-License-Identifier: Apache-2.0
// Spells clusters in the syntax of their source.
#include "strategies/cluster/declared_cluster.hpp"

#include "messages/mapped.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace troupe {

namespace {

constexpr uint64_t tasks_shown_max = 16;
constexpr size_t tasks_of_job_shown = 3;

// An example is read by a person; hundreds of addresses are not.
declared_cluster shortened(declared_cluster cluster) {
  if (cluster.spec.empty()) {
    cluster.spec = {{"chief", std::vector<std::string>{"host0:2222"}},
                    {"worker", std::vector<std::string>{"host1:2222", "host2:2222"}}};
    cluster.task_type = "worker";
    cluster.task_id = 0;
  }
  if (cluster.spec.task_count() <= tasks_shown_max) return cluster;
  for (const auto& job : cluster.spec.jobs()) {
    auto tasks = cluster.spec.tasks(job);
    while (tasks.size() > tasks_of_job_shown)
      tasks.erase(std::prev(tasks.end()));
    cluster.spec.set_job(job, tasks);
  }
  auto tasks_left = cluster.spec.task_count(cluster.task_type.value_or(""));
  if (tasks_left > 0)
    cluster.task_id = std::min(cluster.task_id.value_or(0), static_cast<int64_t>(tasks_left) - 1);
  return cluster;
}

std::string quoted(const std::string& text) {
  return fmt::format("\"{}\"", text);
}

// A list, or {"3": "a:1"} with the sign that TOML or JSON has between key and value.
std::string job_text(const job_addresses& job, std::string_view sign) {
  std::vector<std::string> words;
  if (const auto* list = std::get_if<std::vector<std::string>>(&job)) {
    for (const auto& address : *list)
      words.push_back(quoted(address));
    return fmt::format("[{}]", fmt::join(words, ", "));
  }
  for (const auto& [index, address] : std::get<task_addresses>(job))
    words.push_back(fmt::format("\"{}\"{}{}", index, sign, quoted(address)));
  return fmt::format("{{{}}}", fmt::join(words, ", "));
}

std::string tf_config_text(const declared_cluster& cluster) {
  std::vector<std::string> jobs;
  for (const auto& job : cluster.spec.jobs())
    jobs.push_back(fmt::format("{}: {}", quoted(job), job_text(cluster.spec.addresses(job), ": ")));
  return fmt::format(R"(TF_CONFIG='{{"cluster": {{{}}}, "task": {{"type": {}, "index": {}}}}}')",
                     fmt::join(jobs, ", "), quoted(cluster.task_type.value_or("")),
                     cluster.task_id.value_or(0));
}

std::string flags_text(const declared_cluster& cluster) {
  std::vector<std::string> jobs;
  for (const auto& job : cluster.spec.jobs()) {
    auto addresses = mapped(cluster.spec.tasks(job), [](const auto& task) { return task.second; });
    jobs.push_back(fmt::format("{}={}", job, fmt::join(addresses, ",")));
  }
  return fmt::format("--cluster \"{}\" --task {}:{}", fmt::join(jobs, ";"),
                     cluster.task_type.value_or(""), cluster.task_id.value_or(0));
}

std::string toml_text(const declared_cluster& cluster) {
  std::vector<std::string> jobs;
  for (const auto& job : cluster.spec.jobs())
    jobs.push_back(fmt::format("{} = {}", job, job_text(cluster.spec.addresses(job), " = ")));
  return fmt::format("cluster = {{{}}}\ntask = {{type = {}, index = {}}}", fmt::join(jobs, ", "),
                     quoted(cluster.task_type.value_or("")), cluster.task_id.value_or(0));
}

} // namespace

std::string example_text(const declared_cluster& cluster) {
  auto shown = shortened(cluster);
  switch (cluster.syntax) {
  case cluster_syntax::flags:
    return flags_text(shown);
  case cluster_syntax::tf_config:
    return tf_config_text(shown);
  case cluster_syntax::toml:
    return toml_text(shown);
  default:
    return {};
  }
}

} // namespace troupe
