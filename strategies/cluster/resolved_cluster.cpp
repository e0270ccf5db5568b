// SPDX-License-Identifier: Apache-2.0
// The roles in a resolved cluster, its problems, and its JSON.
#include "strategies/cluster/resolved_cluster.hpp"

#include "messages/errors/assert.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/cluster/cluster_check.hpp"
#include "strategies/cluster/task_types.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe {

std::string to_string(const cluster_task& task) {
  return fmt::format("{} {}", task.type, task.index);
}

resolved_cluster resolved_cluster::alone() {
  return {.tasks = {{.type = "chief"}}, .own = 0};
}

bool resolved_cluster::has_problem() const {
  return std::ranges::any_of(findings, &cluster_finding::is_problem);
}

size_t resolved_cluster::training_task_count() const {
  auto evaluators = std::ranges::count(tasks, "evaluator", &cluster_task::type);
  return tasks.size() - static_cast<size_t>(evaluators);
}

bool resolved_cluster::is_alone() const {
  return training_task_count() == 1 && !(own && is_evaluator());
}

size_t resolved_cluster::chief() const {
  for (std::string_view type : {"chief", "worker"}) {
    auto found = std::ranges::find_if(
      tasks, [&](const auto& task) { return task.type == type && task.index == 0; });
    if (found != tasks.end()) return static_cast<size_t>(found - tasks.begin());
  }
  TROUPE_ASSERT(has_problem(), source);
  return 0;
}

std::string resolved_cluster::problem_line() const {
  return troupe::problem_line(source, findings, mended);
}

void resolved_cluster::require_sound() const {
  if (has_problem()) throw_failure(errc::invalid_argument, "{}", problem_line());
}

std::vector<cluster_task> listed_tasks(const cluster_spec& cluster) {
  std::vector<cluster_task> tasks;
  auto list = [&](const std::string& job) {
    for (const auto& [index, address] : cluster.tasks(job))
      tasks.push_back({job, index, address});
  };
  for (auto type : task_types)
    if (cluster.has_job(type)) list(std::string{type});
  for (const auto& job : cluster.jobs())
    if (!is_task_type(job)) list(job);
  return tasks;
}

std::string to_json(const resolved_cluster& cluster) {
  using json = nlohmann::ordered_json;
  auto task_json = [](const cluster_task& task) {
    return json{{"type", task.type}, {"index", task.index}, {"address", task.address}};
  };
  json all{{"source", cluster.source}, {"tasks", json::array()}, {"own", nullptr}};
  for (const auto& task : cluster.tasks)
    all["tasks"].push_back(task_json(task));
  if (cluster.own) all["own"] = *cluster.own;
  all["ignored"] = cluster.ignored;
  all["problems"] = json::array();
  all["notes"] = json::array();
  for (const auto& finding : cluster.findings)
    all[finding.is_problem() ? "problems" : "notes"].push_back(finding.reason.message);
  all["mended"] = cluster.mended.empty() ? json{} : json(cluster.mended);
  // The report is JSON even if a variable holds bytes that are no UTF-8.
  return all.dump(2, ' ', false, json::error_handler_t::replace);
}

} // namespace troupe
