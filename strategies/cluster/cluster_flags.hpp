// SPDX-License-Identifier: Apache-2.0
// A cluster on the command line.
#pragma once

#include "strategies/cluster/declared_cluster.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The options of a command that describe the cluster; an empty one says nothing.
struct cluster_options {
  /// "chief=a:1;ps=b:1,b:2;worker=c:1,d:1", or how many of each a launcher has started:
  /// "ps=2;worker=2".
  std::string cluster;
  std::string task; ///< "worker:1"; "chief" alone is chief 0.
  std::string file; ///< A TOML file with the tables [cluster] and [task].
  /// Label selectors of each job's pods: "chief=app=chief;worker=app in (a,b)".
  std::string kubernetes;
  std::string kubernetes_api; ///< "host:port" of an API server over plain HTTP: a kubectl proxy.
  /// The first port of tasks if their launcher names hosts alone: Slurm, Open MPI; of all pods.
  std::optional<uint16_t> port_base;
  std::string interface; ///< Which network card to listen on, as `choose_network_card` takes it.
};

/// How many tasks of each type `options.cluster` asks for; nothing if it has addresses. A launcher
/// numbers processes and knows nothing of types, so they take them in the order of their names.
[[nodiscard]] std::optional<std::map<std::string, uint64_t>>
counted_by_flags(const cluster_options& options);

/// Takes `options.kubernetes` apart.
/// @param findings Gets a problem for each part that is not "job=selector", for a job that stands
/// twice, and if there is none.
[[nodiscard]] std::map<std::string, std::vector<std::string>>
selectors_by_flags(const cluster_options& options, std::vector<cluster_finding>& findings);

/// Takes `options.cluster` apart.
/// @param findings Gets a problem for each part that is not "job=host:port,...", and for a job that
/// stands twice.
[[nodiscard]] declared_cluster declared_by_flags(const cluster_options& options,
                                                 std::vector<cluster_finding>& findings);

/// Makes the cluster's own task that of `options.task`, if there is one.
/// @param findings Gets a problem if that is not "type:index".
void apply_task_flag(const cluster_options& options, declared_cluster& cluster,
                     std::vector<cluster_finding>& findings);

} // namespace troupe
