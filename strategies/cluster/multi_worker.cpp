// SPDX-License-Identifier: Apache-2.0
// The duties of tasks, by their type and index.
#include "strategies/cluster/multi_worker.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/cluster/cluster_check.hpp"

namespace troupe {

cluster_spec normalize_cluster_spec(const std::map<std::string, std::vector<std::string>>& jobs) {
  cluster_spec cluster;
  for (const auto& [job, addresses] : jobs)
    cluster.set_job(job, addresses);
  return cluster;
}

void validate_cluster_spec(const cluster_spec& cluster, const std::string& task_type,
                           uint64_t task_id) {
  if (cluster.empty())
    throw_failure(errc::invalid_argument, "there is no cluster that a {} could be in", task_type);
  require(!cluster.has_job("master"),
          "the cluster: 'master' is no task type; it is called 'chief'");
  auto checked = check_tasks({.source = "the cluster",
                              .spec = cluster,
                              .task_type = task_type,
                              .task_id = static_cast<int64_t>(task_id)});
  if (checked.has_problem())
    throw_failure(errc::invalid_argument, "{}", problem_line("the cluster", checked.findings, ""));
}

bool is_chief(const cluster_spec& cluster, const std::string& task_type, uint64_t task_id) {
  if (cluster.empty()) return true;
  validate_cluster_spec(cluster, task_type, task_id);
  if (task_type == "chief" || task_type == "evaluator") return true;
  return task_type == "worker" && task_id == 0 && !cluster.has_job("chief");
}

uint64_t worker_count(const cluster_spec& cluster, const std::string& task_type) {
  auto is_there = cluster.task_count(task_type) > 0;
  validate_cluster_spec(cluster, task_type, is_there ? cluster.task_indices(task_type).front() : 0);
  if (task_type == "evaluator") return cluster.task_count("evaluator");
  if (task_type != "chief" && task_type != "worker")
    throw_failure(errc::invalid_argument, "worker_count: a '{}' is no worker", task_type);
  return cluster.task_count("chief") + cluster.task_count("worker");
}

uint64_t id_in_cluster(const cluster_spec& cluster, const std::string& task_type,
                       uint64_t task_id) {
  validate_cluster_spec(cluster, task_type, task_id);
  if (task_type == "chief") return 0;
  if (task_type == "worker") return task_id + cluster.task_count("chief");
  if (task_type == "evaluator") return task_id;
  throw_failure(errc::invalid_argument, "id_in_cluster: a '{}' has no number among the workers",
                task_type);
}

std::string collective_leader(const cluster_spec& cluster, const std::string& task_type,
                              uint64_t task_id) {
  if (cluster.empty()) return {};
  validate_cluster_spec(cluster, task_type, task_id);
  if (task_type == "evaluator") return {};
  return cluster.has_job("chief") ? "/job:chief/replica:0/task:0" : "/job:worker/replica:0/task:0";
}

bool should_save_checkpoint(const cluster_spec& cluster, const std::string& task_type,
                            uint64_t task_id) {
  return is_chief(cluster, task_type, task_id);
}

bool should_load_checkpoint(const cluster_spec& cluster, const std::string& task_type,
                            uint64_t task_id) {
  if (!cluster.empty()) validate_cluster_spec(cluster, task_type, task_id);
  return true;
}

bool should_save_summary(const cluster_spec& cluster, const std::string& task_type,
                         uint64_t task_id) {
  return is_chief(cluster, task_type, task_id);
}

} // namespace troupe
