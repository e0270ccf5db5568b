// SPDX-License-Identifier: Apache-2.0
// `troupe train` in the process that is the cluster's evaluator.
#pragma once

#include "strategies/cluster/resolved_cluster.hpp"
#include "tools/train/command_line.hpp"
#include "tools/train/learning_problem.hpp"

namespace troupe {

/// Looks at the folder of the run until it is over, and takes no part in it.
/// @param cluster Where this process is the evaluator.
/// @returns The exit code of the process, as `train_command_main`.
[[nodiscard]] int evaluator_command(const train_command& command, const resolved_cluster& cluster,
                                    const learning_problem& problem);

} // namespace troupe
