// SPDX-License-Identifier: Apache-2.0
// Counts processes, and reads variables that launchers set.
#include "strategies/cluster/launch_slots.hpp"

#include "actors/net/host_port.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/cluster/host_list.hpp"

#include <utility>

namespace troupe {

cluster_spec sliced(const job_counts& jobs, const std::vector<std::string>& addresses) {
  uint64_t task_count = 0;
  for (const auto& [job, count] : jobs)
    task_count += count;
  if (task_count != addresses.size())
    throw_failure(errc::failed_precondition, "jobs ask for {} tasks, but {} were started",
                  task_count, addresses.size());
  cluster_spec cluster;
  auto next = addresses.begin();
  for (const auto& [job, count] : jobs) {
    auto end = next + static_cast<ptrdiff_t>(count);
    cluster.set_job(job, std::vector<std::string>(next, end));
    next = end;
  }
  return cluster;
}

task_query task_of_process(const job_counts& jobs, uint64_t process) {
  auto left = process;
  for (const auto& [job, count] : jobs) {
    if (left < count) return {.task_type = job, .task_id = left};
    left -= count;
  }
  throw_failure(errc::failed_precondition, "process {} is said to be one of {}, counted from 0",
                process, process - left);
}

const char* first_variable_set(const environment_reader& environment, const std::string& launcher,
                               std::initializer_list<const char*> names) {
  for (const auto* name : names)
    if (auto value = environment(name); value && !value->empty()) return name;
  throw_failure(errc::failed_precondition,
                "{} has not set {}: start the process by it, or give --cluster", launcher,
                *names.begin());
}

std::string launcher_text(const environment_reader& environment, const std::string& launcher,
                          std::initializer_list<const char*> names) {
  return *environment(first_variable_set(environment, launcher, names));
}

uint64_t launcher_number(const environment_reader& environment, const std::string& launcher,
                         std::initializer_list<const char*> names) {
  auto text = launcher_text(environment, launcher, names);
  auto number = parse_count(text, launcher_number_max);
  if (!number)
    throw_failure(errc::failed_precondition, "{}: {} must be a whole number up to {}, not '{}'",
                  launcher, first_variable_set(environment, launcher, names), launcher_number_max,
                  text);
  return *number;
}

declared_cluster declared_by_launcher(const std::string& launcher, const cluster_resolver& resolver,
                                      std::vector<cluster_finding>& findings) {
  declared_cluster declared{.source = launcher};
  try {
    declared.spec = resolver.cluster_spec();
    declared.task_type = resolver.task_type();
    if (auto id = resolver.task_id()) declared.task_id = static_cast<int64_t>(*id);
  } catch (const failure& failed) {
    declared.spec = {};
    auto reason = failed.reason();
    const auto source = launcher + ": "; // which begins the line of all findings
    if (reason.message.starts_with(source)) reason.message.erase(0, source.size());
    findings.push_back({cluster_finding::severity::problem, std::move(reason)});
  }
  return declared;
}

} // namespace troupe
