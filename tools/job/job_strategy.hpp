// SPDX-License-Identifier: Apache-2.0
// Makes the strategy that the options of a job name.
#pragma once

#include "strategies/cluster/server.hpp"
#include "strategies/contexts/strategy.hpp"
#include "tools/job/job_devices.hpp"
#include "tools/options/job_options.hpp"

#include <memory>

namespace troupe {

/// Makes the strategy that --strategy names, for the replicas of this process.
/// @param world, server Outlive the strategy. @param devices The opened devices of this process.
/// Errors: throws `failure`, as the strategy's constructor.
[[nodiscard]] std::unique_ptr<strategy>
make_strategy(world& world, server& server, const job_options& options, const job_devices& devices);

} // namespace troupe
