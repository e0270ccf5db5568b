// SPDX-License-Identifier: Apache-2.0
// The tasks of a cluster, and their addresses.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Tasks of a job by index; there may be holes.
using task_addresses = std::map<uint64_t, std::string>;

/// No task of a type has a larger index.
constexpr uint64_t task_index_max = 1'000'000;

/// A job as people give it: the addresses of tasks 0, 1, 2 and so on, or those by index.
using job_addresses = std::variant<std::vector<std::string>, task_addresses>;

/// Processes of a job have to know each other's addresses before they can talk. A cluster is a list
/// of jobs ("chief", "ps", "worker", "evaluator"), each of them a list of tasks, each of them an
/// address "host:port". Nothing here looks whether names and addresses make sense: `check` does.
/// Source: TensorFlow, `tf.train.ClusterSpec`.
class cluster_spec {
public:
  /// No job at all.
  cluster_spec() = default;

  /// @param jobs In this order; of several with the same name the last counts.
  /// Errors: throws `failure` as `set_job`.
  cluster_spec(std::initializer_list<std::pair<std::string, job_addresses>> jobs);

  /// Adds a job, or gives the one of that name other tasks.
  /// Errors: throws `failure` with invalid_argument for a task beyond `task_index_max`.
  void set_job(const std::string& name, const job_addresses& tasks);

  /// Takes a job away, if it is there.
  void remove_job(std::string_view name);

  [[nodiscard]] bool empty() const { return jobs_.empty(); }

  explicit operator bool() const { return !empty(); }

  /// Names of jobs, in the order in which they were added.
  [[nodiscard]] std::vector<std::string> jobs() const;

  [[nodiscard]] bool has_job(std::string_view name) const;

  /// How many tasks a job has; holes are none.
  /// Errors: throws `failure`, here and below: invalid_argument, for a job that is not there.
  [[nodiscard]] uint64_t num_tasks(std::string_view job) const;

  /// As `num_tasks`, but 0 for a job that is not there.
  [[nodiscard]] uint64_t task_count(std::string_view job) const;

  /// Tasks of all jobs.
  [[nodiscard]] uint64_t task_count() const;

  /// Indices of a job's tasks, the smallest first.
  [[nodiscard]] std::vector<uint64_t> task_indices(std::string_view job) const;

  /// Errors: invalid_argument also for a task that is not there.
  [[nodiscard]] const std::string& task_address(std::string_view job, uint64_t index) const;

  /// Addresses by index, up to the greatest one; nothing for a hole.
  [[nodiscard]] std::vector<std::optional<std::string>> job_tasks(std::string_view job) const;

  /// Tasks of a job by index.
  [[nodiscard]] const task_addresses& tasks(std::string_view job) const;

  /// A list if the job has tasks and no hole, else tasks by index.
  [[nodiscard]] job_addresses addresses(std::string_view job) const;

  /// Whether both have the same jobs with the same tasks; in which order they came is no matter.
  bool operator==(const cluster_spec& other) const;

private:
  std::vector<std::pair<std::string, task_addresses>> jobs_;
};

/// "cluster_spec({'ps': ['a:1'], 'worker': {1: 'b:1'}})", sorted by the names of jobs.
[[nodiscard]] std::string to_string(const cluster_spec& cluster);

} // namespace troupe
