// SPDX-License-Identifier: Apache-2.0
// The cluster that Open MPI's mpirun has started.
#pragma once

#include "strategies/cluster/cluster_flags.hpp"
#include "strategies/cluster/cluster_resolver.hpp"
#include "strategies/cluster/environment.hpp"
#include "strategies/cluster/launch_slots.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The settings that Open MPI does not know.
struct open_mpi_options {
  std::optional<job_counts> jobs; ///< Nothing: all processes are workers.
  /// Hosts in the order of processes, each with as many; "host:port" has another first port. Empty:
  /// those of the variable TROUPE_HOSTS, which is written as `expand_hostlist` takes them.
  std::vector<std::string> hosts;
  uint16_t port_base = 8888; ///< Port of each host's first process.
  std::optional<std::string> rpc_layer;
};

/// Reads OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE. mpirun tells no process where the others
/// are: where no hosts are given, all are on 127.0.0.1, if OMPI_COMM_WORLD_LOCAL_SIZE says that all
/// are on one machine. All is read anew on every call.
/// Errors: throws `failure`: failed_precondition for a variable that is missing or malformed, for
/// hosts that are not known, and for processes that hosts do not divide evenly.
class open_mpi_resolver final : public cluster_resolver {
public:
  explicit open_mpi_resolver(open_mpi_options options = {},
                             environment_reader environment = process_environment());

  [[nodiscard]] troupe::cluster_spec cluster_spec() const override;

  /// How the place of this process on its machine, OMPI_COMM_WORLD_LOCAL_RANK, differs from the one
  /// that the list of hosts gives it (mpirun --map-by node); empty if it does not.
  [[nodiscard]] std::string misplacement() const;

private:
  [[nodiscard]] task_query found_task() const override;
  [[nodiscard]] std::vector<std::string> addresses() const;
  [[nodiscard]] uint64_t number(const char* variable) const;
  [[nodiscard]] job_counts jobs() const;
  [[nodiscard]] std::vector<std::string> hosts(uint64_t processes) const;

  open_mpi_options options_;
  environment_reader environment_;
};

/// The cluster as Open MPI declares it. @param options For jobs and ports. @param findings Gets all
/// that is wrong, and a problem if mpirun has put this process on another host than the list names.
[[nodiscard]] declared_cluster declared_by_open_mpi(const cluster_options& options,
                                                    const environment_reader& environment,
                                                    std::vector<cluster_finding>& findings);

} // namespace troupe
