// SPDX-License-Identifier: Apache-2.0
// Finds the cluster that a job runs in, and checks that its options suit it.
#pragma once

#include "strategies/cluster/resolved_cluster.hpp"
#include "tools/options/job_command.hpp"
#include "tools/options/job_options.hpp"

namespace troupe {

/// Fits the number of replicas, if it is not given, to the cluster that the command line or the
/// environment names, so that options can be checked. If no cluster can be found, the number stays:
/// `find_cluster` says why.
void fit_to_cluster(const job_command& command, job_options& options);

/// Finds the cluster that the command line or the environment names. @param options Fitted to it.
/// Errors: invalid_argument; the line names what is wrong with the cluster, or the option that does
/// not suit it.
[[nodiscard]] expected<resolved_cluster> find_cluster(const job_command& command,
                                                      const job_options& options);

/// The task that leads, for people: "chief 0 (10.0.0.1:2222)".
[[nodiscard]] std::string chief_text(const resolved_cluster& cluster);

} // namespace troupe
