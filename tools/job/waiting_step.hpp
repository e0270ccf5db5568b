// SPDX-License-Identifier: Apache-2.0
// A step that only waits.
#pragma once

#include "strategies/jobs/training.hpp"
#include "tools/job/job_optimizer.hpp"

#include <vector>

namespace troupe {

/// What a replica does in a job that is about its schedule alone: reads the variables, waits for as
/// long as a gradient is said to take, and applies zeros.
[[nodiscard]] step_function waiting_step(job_optimizer optimizer, std::vector<variable> variables);

} // namespace troupe
