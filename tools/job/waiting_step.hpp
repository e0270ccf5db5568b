// SPDX-License-Identifier: Apache-2.0
// A step that only waits.
#pragma once

#include "strategies/jobs/training.hpp"
#include "tools/job/job_optimizer.hpp"

#include <vector>

namespace troupe {

/// The step of a job that tries out its schedule alone: a replica reads the variables, waits for as
/// long as a gradient is said to take, and applies zeros.
[[nodiscard]] step_function waiting_step(job_optimizer optimizer, std::vector<variable> variables);

} // namespace troupe
