// SPDX-License-Identifier: Apache-2.0
// The cluster as a job uses it: a list of tasks, and which of them this process is.
#pragma once

#include "strategies/cluster/declared_cluster.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One process of a job.
struct cluster_task {
  std::string type; ///< "chief", "ps", "worker" or "evaluator".
  uint64_t index = 0;
  /// Where it listens, "host:port"; empty if it is not dialed, or is alone.
  std::string address;

  bool operator==(const cluster_task&) const = default;
};

/// "worker 1"
[[nodiscard]] std::string to_string(const cluster_task& task);

/// The result of asking all sources that may know the cluster. All processes of a job get the same
/// list of tasks, so a position in it names a process.
struct resolved_cluster {
  /// The cluster of a process that knows of no other.
  [[nodiscard]] static resolved_cluster alone();

  /// Chief, parameter servers, workers, evaluator, each type by index. Without any cluster one
  /// chief without an address: this process.
  std::vector<cluster_task> tasks;
  std::optional<size_t> own;        ///< This process in `tasks`; nothing only if `has_problem`.
  std::string source;               ///< Where it is described: "TF_CONFIG"; empty: nowhere.
  std::vector<std::string> ignored; ///< Other sources that said something, too.
  std::vector<cluster_finding> findings;
  /// An example in the source's own syntax, if there is a problem, or a note about how it could be
  /// said more clearly; may be empty.
  std::string mended;

  /// Whether something must be mended before anything can be started.
  [[nodiscard]] bool has_problem() const;

  /// Processes that take part in the training, as an evaluator does not.
  [[nodiscard]] size_t training_task_count() const;

  /// Whether one of the tasks is an evaluator.
  [[nodiscard]] bool has_evaluator() const { return training_task_count() < tasks.size(); }

  /// Whether this process is the evaluator. @pre own
  [[nodiscard]] bool is_evaluator() const { return self().type == "evaluator"; }

  /// Whether this process makes up the whole job, but for an evaluator.
  [[nodiscard]] bool is_alone() const;

  /// The task of this process. @pre own
  [[nodiscard]] const cluster_task& self() const { return tasks.at(own.value()); }

  /// The task that leads the job: the chief, or worker 0 if there is none; a position in `tasks`.
  /// @pre !has_problem()
  [[nodiscard]] size_t chief() const;

  /// @pre !has_problem()
  [[nodiscard]] bool is_chief() const { return own == chief(); }

  /// All problems in one line, with a mended example; empty if there is none.
  [[nodiscard]] std::string problem_line() const;

  /// Errors: throws `failure`: invalid_argument with `problem_line()`, if there is a problem.
  void require_sound() const;
};

/// Tasks of a cluster in the order of `resolved_cluster::tasks`; jobs of other names come last.
[[nodiscard]] std::vector<cluster_task> listed_tasks(const cluster_spec& cluster);

/// As one JSON object, for programs.
[[nodiscard]] std::string to_json(const resolved_cluster& cluster);

} // namespace troupe
