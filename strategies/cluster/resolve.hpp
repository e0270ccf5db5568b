// SPDX-License-Identifier: Apache-2.0
// The cluster that this process is part of, asked from all sources that may know it.
#pragma once

#include "strategies/cluster/cluster_flags.hpp"
#include "strategies/cluster/environment.hpp"
#include "strategies/cluster/resolved_cluster.hpp"

namespace troupe {

/// A process should not have to be told twice which task it is: its launcher said so. Asks, in
/// this order, the options (`--cluster`, `--cluster-file`, `--kubernetes`), TF_CONFIG, torchrun,
/// Slurm and Open MPI; the first that names a cluster is believed, the others are listed as
/// ignored. If there is none, the process is alone. Open MPI inside a Slurm job is believed before
/// Slurm, which has not started the processes then. `--task` says which task we are where the
/// cluster is described by hand. Errors: none are thrown; `resolved_cluster::findings` has them
/// all.
[[nodiscard]] resolved_cluster resolve(const cluster_options& options,
                                       const environment_reader& environment);

} // namespace troupe
