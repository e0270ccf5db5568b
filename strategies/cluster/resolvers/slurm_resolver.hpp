// SPDX-License-Identifier: Apache-2.0
// The cluster that Slurm has started.
#pragma once

#include "strategies/cluster/cluster_flags.hpp"
#include "strategies/cluster/cluster_resolver.hpp"
#include "strategies/cluster/environment.hpp"
#include "strategies/cluster/launch_slots.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The settings that Slurm does not know. Source: TensorFlow, `SlurmClusterResolver`.
struct slurm_options {
  std::optional<job_counts> jobs;         ///< Nothing: all tasks are workers.
  uint16_t port_base = 8888;              ///< Port of each host's first task.
  std::optional<uint64_t> gpus_per_node;  ///< Nothing: as `visible_gpus`.
  std::optional<uint64_t> gpus_per_task;  ///< Nothing: those of a node, divided.
  std::optional<uint64_t> tasks_per_node; ///< Nothing: as Slurm says.
  std::optional<std::map<std::string, uint64_t>> tasks_of_host; ///< Instead, for each host.
  std::optional<std::string> rpc_layer = "grpc";
  /// TensorFlow sorts hosts by their letters, "n10" before "n9", while Slurm numbers processes in
  /// the order of its list: true keeps to the list, so that each process is where it runs.
  bool hosts_as_listed = false;
};

/// Where a process runs.
struct process_place {
  uint64_t host = 0;  ///< Its position in the list of hosts.
  uint64_t local = 0; ///< Which of the host's tasks it is.

  bool operator==(const process_place&) const = default;
};

/// Reads SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE, or
/// the job's variables of these names where the step's are missing. Each host's tasks listen on
/// port_base, port_base + 1 and so on. All is read anew on every call.
/// Errors: throws `failure`: failed_precondition for a variable that is missing or malformed, for
/// more GPUs than a node has, for jobs that do not add up to the tasks, and for variables that
/// count different numbers of tasks.
class slurm_resolver final : public cluster_resolver {
public:
  explicit slurm_resolver(slurm_options options = {},
                          environment_reader environment = process_environment());

  using cluster_resolver::num_accelerators;

  [[nodiscard]] troupe::cluster_spec cluster_spec() const override;

  /// {"GPU", gpus_per_task}, whatever task is asked about; empty if that is none.
  [[nodiscard]] std::map<std::string, uint64_t>
  num_accelerators(const task_query& query) const override;

  /// Where this process runs, if hosts are filled one after the other.
  [[nodiscard]] process_place place() const;

  /// The name of that host.
  [[nodiscard]] std::string host() const;

  /// The GPUs of this process, for CUDA_VISIBLE_DEVICES: "2,3". TensorFlow's resolver sets the
  /// variable itself; here the code that starts threads decides when that is safe.
  [[nodiscard]] std::string visible_devices() const;

private:
  struct layout;

  [[nodiscard]] task_query found_task() const override;
  [[nodiscard]] layout read() const;
  [[nodiscard]] job_counts jobs() const;
  void check_count(uint64_t places) const;
  [[nodiscard]] uint64_t gpus_per_task(const layout& hosts) const;

  slurm_options options_;
  environment_reader environment_;
};

/// GPUs that this process may use: the entries of CUDA_VISIBLE_DEVICES, else the devices
/// /dev/nvidia0, /dev/nvidia1 and so on.
[[nodiscard]] uint64_t visible_gpus(const environment_reader& environment);

/// The cluster as Slurm declares it, with hosts in the order of Slurm's list.
/// @param options For jobs and ports.
/// @param findings Gets what is wrong, and a problem if the job's tasks were not started (a batch
/// script without srun), or if Slurm has put this process elsewhere than its number says: srun
/// --distribution=cyclic, or a heterogeneous step with nodes out of order.
[[nodiscard]] declared_cluster declared_by_slurm(const cluster_options& options,
                                                 const environment_reader& environment,
                                                 std::vector<cluster_finding>& findings);

} // namespace troupe
