// SPDX-License-Identifier: Apache-2.0
// The cluster that PyTorch's torchrun has started.
#pragma once

#include "strategies/cluster/cluster_flags.hpp"
#include "strategies/cluster/cluster_resolver.hpp"
#include "strategies/cluster/environment.hpp"
#include "strategies/cluster/launch_slots.hpp"

#include <optional>
#include <vector>

namespace troupe {

/// Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun and its followers set them
/// (`torchrun --no-python` starts any program). Rank 0 is the chief, at MASTER_ADDR and the port
/// behind MASTER_PORT, because torchrun's own store listens on that; the others are workers. If all
/// machines run as many processes, the first LOCAL_WORLD_SIZE of them are at MASTER_ADDR, too, each
/// at port MASTER_PORT + 1 + rank. No variable says where those of other machines are, so their
/// addresses are empty: they dial the chief and the parameter servers. All is read anew on every
/// call. Errors: throws `failure`: failed_precondition for a variable that is missing or malformed,
/// and for ports beyond 65535.
class torchrun_resolver final : public cluster_resolver {
public:
  /// @param jobs Nothing: a chief, and workers.
  explicit torchrun_resolver(environment_reader environment = process_environment(),
                             std::optional<job_counts> jobs = std::nullopt);

  [[nodiscard]] troupe::cluster_spec cluster_spec() const override;

  /// On which of the machines this process runs, counted from 0: GROUP_RANK; nothing if not set.
  [[nodiscard]] std::optional<uint64_t> machine() const;

  /// Which of the machine's processes this is, counted from 0: LOCAL_RANK; nothing if not set.
  [[nodiscard]] std::optional<uint64_t> local_rank() const;

private:
  [[nodiscard]] task_query found_task() const override;
  [[nodiscard]] uint64_t number(const char* variable) const;
  [[nodiscard]] std::optional<uint64_t> number_if_set(const char* variable) const;
  [[nodiscard]] job_counts jobs() const;
  [[nodiscard]] uint64_t processes_of_first_machine(uint64_t processes) const;

  environment_reader environment_;
  std::optional<job_counts> jobs_;
};

/// The cluster as torchrun declares it. @param options For jobs. @param findings Gets problems.
[[nodiscard]] declared_cluster declared_by_torchrun(const cluster_options& options,
                                                    const environment_reader& environment,
                                                    std::vector<cluster_finding>& findings);

} // namespace troupe
