// SPDX-License-Identifier: Apache-2.0
// Keeps jobs in the order in which they came, and tasks by index.
#include "strategies/cluster/cluster_spec.hpp"

#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {

namespace {

task_addresses by_index(const job_addresses& job) {
  if (const auto* tasks = std::get_if<task_addresses>(&job)) return *tasks;
  task_addresses tasks;
  for (const auto& address : std::get<std::vector<std::string>>(job))
    tasks.emplace(tasks.size(), address);
  return tasks;
}

std::string text_of(const job_addresses& job) {
  std::vector<std::string> words;
  if (const auto* list = std::get_if<std::vector<std::string>>(&job)) {
    for (const auto& address : *list)
      words.push_back(fmt::format("'{}'", address));
    return fmt::format("[{}]", fmt::join(words, ", "));
  }
  for (const auto& [index, address] : std::get<task_addresses>(job))
    words.push_back(fmt::format("{}: '{}'", index, address));
  return fmt::format("{{{}}}", fmt::join(words, ", "));
}

} // namespace

cluster_spec::cluster_spec(std::initializer_list<std::pair<std::string, job_addresses>> jobs) {
  for (const auto& [name, tasks] : jobs)
    set_job(name, tasks);
}

void cluster_spec::set_job(const std::string& name, const job_addresses& tasks) {
  auto indexed = by_index(tasks);
  if (!indexed.empty() && indexed.rbegin()->first > task_index_max)
    throw_failure(errc::invalid_argument,
                  "the cluster's job '{}' has a task {}; tasks are numbered from 0 to {}", name,
                  indexed.rbegin()->first, task_index_max);
  auto found = std::ranges::find(jobs_, name, [](const auto& job) { return job.first; });
  if (found == jobs_.end())
    jobs_.emplace_back(name, std::move(indexed));
  else
    found->second = std::move(indexed);
}

void cluster_spec::remove_job(std::string_view name) {
  std::erase_if(jobs_, [&](const auto& job) { return job.first == name; });
}

std::vector<std::string> cluster_spec::jobs() const {
  return mapped(jobs_, [](const auto& job) { return job.first; });
}

bool cluster_spec::has_job(std::string_view name) const {
  return std::ranges::any_of(jobs_, [&](const auto& job) { return job.first == name; });
}

uint64_t cluster_spec::num_tasks(std::string_view job) const {
  return tasks(job).size();
}

uint64_t cluster_spec::task_count(std::string_view job) const {
  return has_job(job) ? num_tasks(job) : 0;
}

uint64_t cluster_spec::task_count() const {
  uint64_t count = 0;
  for (const auto& [name, tasks] : jobs_)
    count += tasks.size();
  return count;
}

std::vector<uint64_t> cluster_spec::task_indices(std::string_view job) const {
  return mapped(tasks(job), [](const auto& task) { return task.first; });
}

const std::string& cluster_spec::task_address(std::string_view job, uint64_t index) const {
  const auto& all = tasks(job);
  auto found = all.find(index);
  if (found == all.end())
    throw_failure(errc::invalid_argument, "the cluster's job '{}' has no task {}; it has {}", job,
                  index, fmt::join(task_indices(job), ", "));
  return found->second;
}

std::vector<std::optional<std::string>> cluster_spec::job_tasks(std::string_view job) const {
  std::vector<std::optional<std::string>> result;
  for (const auto& [index, address] : tasks(job)) {
    result.resize(index);
    result.emplace_back(address);
  }
  return result;
}

const task_addresses& cluster_spec::tasks(std::string_view job) const {
  for (const auto& [name, tasks] : jobs_)
    if (name == job) return tasks;
  throw_failure(errc::invalid_argument, "the cluster has no job '{}'; it has {}", job,
                empty() ? "none" : fmt::format("{}", fmt::join(jobs(), ", ")));
}

job_addresses cluster_spec::addresses(std::string_view job) const {
  const auto& all = tasks(job);
  if (all.empty() || all.rbegin()->first + 1 != all.size()) return all;
  return mapped(all, [](const auto& task) { return task.second; });
}

bool cluster_spec::operator==(const cluster_spec& other) const {
  return std::ranges::is_permutation(jobs_, other.jobs_);
}

std::string to_string(const cluster_spec& cluster) {
  auto names = cluster.jobs();
  std::ranges::sort(names);
  std::vector<std::string> words;
  for (const auto& name : names)
    words.push_back(fmt::format("'{}': {}", name, text_of(cluster.addresses(name))));
  return fmt::format("cluster_spec({{{}}})", fmt::join(words, ", "));
}

} // namespace troupe
