// SPDX-License-Identifier: Apache-2.0
// A step that waits instead of computing.
#pragma once

#include "strategies/jobs/training.hpp"
#include "tools/job/job_optimizer.hpp"

#include <vector>

namespace troupe {

/// The step of a job that only tests its schedule: a replica reads the variables, waits for as long
/// as the options say that a gradient takes, and applies zeros.
[[nodiscard]] step_function waiting_step(job_optimizer optimizer, std::vector<variable> variables);

} // namespace troupe
