// SPDX-License-Identifier: Apache-2.0
// The tasks of a job that `troupe launch` starts, and their environment variables.
#pragma once

#include "tools/launch/command_line.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// One process of a job, by TensorFlow's names.
struct launch_task {
  std::string type; ///< "chief", "worker", "ps" or "evaluator".
  uint32_t index = 0;
  uint16_t port = 0; ///< On 127.0.0.1, for the task to listen at; 0: the task knows from elsewhere.

  /// Its name in lines: "worker:2".
  [[nodiscard]] std::string name() const;

  /// The name of its file below --log-dir: "worker-2.log".
  [[nodiscard]] std::string log_name() const;

  bool operator==(const launch_task&) const = default;
};

/// Reads a task's name: "worker:1", or "chief" for chief:0.
/// Errors: invalid_argument.
[[nodiscard]] expected<launch_task> parse_task_name(std::string_view text);

/// Whether a task is a worker that does not lead the job, as worker 0 does if there is no chief.
[[nodiscard]] bool is_worker_but_no_chief(std::span<const launch_task> tasks,
                                          const launch_task& task);

/// Names several tasks, in the order of `tasks`: "chief:0 worker:0-3,7".
/// @param numbers Positions in `tasks`, each once.
[[nodiscard]] std::string task_ranges(std::span<const launch_task> tasks,
                                      std::vector<size_t> numbers);

/// The number of tasks of a job with these options.
[[nodiscard]] size_t task_count(const launch_options& options);

/// The chief, workers, parameter servers and evaluator, in this order.
/// @param ports One for each.
[[nodiscard]] std::vector<launch_task> launch_tasks(const launch_options& options,
                                                    std::span<const uint16_t> ports);

/// The value of TF_CONFIG for one of the tasks.
/// Source: TensorFlow, "Distributed training with TensorFlow", section "Setting up TF_CONFIG".
[[nodiscard]] std::string tf_config(std::span<const launch_task> tasks, const launch_task& self);

/// The environment of a task: the launcher's own, with TF_CONFIG, with TROUPE_JOB_ID if there is an
/// id, and with OMP_NUM_THREADS unless that is set: the task's share of the processors, since
/// libraries that start a thread for each processor in each task are slower than one thread. A task
/// without a port gets neither TF_CONFIG nor OMP_NUM_THREADS: it knows its cluster from its
/// arguments, or from the launcher's environment. Without `restarts` it also keeps the launcher's
/// TROUPE_RESTART_COUNT, which a scheduler of launchers sets.
/// @param inherited The launcher's, as "NAME=value". @param processors Processors of the job.
/// @param restarts How often the job was started before, as TROUPE_RESTART_COUNT; nothing: the
/// launcher does not start it again. @param launcher Where the job says which tasks it may lose, as
/// TROUPE_LAUNCHER; empty: it cannot.
[[nodiscard]] std::vector<std::string>
task_environment(std::span<const std::string> inherited, std::span<const launch_task> tasks,
                 const launch_task& self, const std::string& job_id,
                 std::optional<uint32_t> restarts, size_t processors,
                 const std::string& launcher = {});

} // namespace troupe
