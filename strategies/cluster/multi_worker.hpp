// SPDX-License-Identifier: Apache-2.0
// The duties of a task in a cluster: plain functions of the cluster and the task.
#pragma once

#include "strategies/cluster/cluster_spec.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe {

/// A cluster from a table of jobs, sorted by name. Source, here and below: TensorFlow,
/// `tensorflow/python/distribute/multi_worker_util.py`.
[[nodiscard]] cluster_spec
normalize_cluster_spec(const std::map<std::string, std::vector<std::string>>& jobs);

/// Returns the cluster as it is.
[[nodiscard]] inline cluster_spec normalize_cluster_spec(cluster_spec cluster) {
  return cluster;
}

/// Errors, here and in all functions below: throws `failure`: invalid_argument for a job that is no
/// task type, more than one chief or evaluator, a task type that is none or not in the cluster, and
/// an index that is not in the job. An evaluator need not be in the cluster. A cluster without jobs
/// is refused, but for where it says otherwise.
void validate_cluster_spec(const cluster_spec& cluster, const std::string& task_type,
                           uint64_t task_id);

/// Whether the task does what one has to do: the chief, or worker 0 if there is none; every
/// evaluator; and every task where there is no cluster.
[[nodiscard]] bool is_chief(const cluster_spec& cluster, const std::string& task_type,
                            uint64_t task_id);

/// How many work as the task does: chief and workers for those, evaluators for an evaluator.
/// Errors: invalid_argument also for a parameter server.
[[nodiscard]] uint64_t worker_count(const cluster_spec& cluster, const std::string& task_type);

/// The task's number among them. Errors: invalid_argument also for a parameter server.
[[nodiscard]] uint64_t id_in_cluster(const cluster_spec& cluster, const std::string& task_type,
                                     uint64_t task_id);

/// The leader of collectives: "/job:chief/replica:0/task:0", or worker 0; empty without a cluster
/// and for an evaluator, which takes part in none.
[[nodiscard]] std::string collective_leader(const cluster_spec& cluster,
                                            const std::string& task_type, uint64_t task_id);

/// Whether the task's checkpoints are those that count: the chief's.
[[nodiscard]] bool should_save_checkpoint(const cluster_spec& cluster, const std::string& task_type,
                                          uint64_t task_id);

/// Whether the task reads a checkpoint to go on from: every task does.
[[nodiscard]] bool should_load_checkpoint(const cluster_spec& cluster, const std::string& task_type,
                                          uint64_t task_id);

/// Whether the task writes summaries: the chief, and an evaluator its own.
[[nodiscard]] bool should_save_summary(const cluster_spec& cluster, const std::string& task_type,
                                       uint64_t task_id);

} // namespace troupe
