// SPDX-License-Identifier: Apache-2.0
// Steps of the policy `cancel`, simulated without a queue, where only their sums are asked for.
#pragma once

#include "simulation/scenario.hpp"

namespace troupe {

/// Whether `count_cancelled_steps` makes the scenario's report: under `cancel` with a fixed number
/// of gradients, if neither its hash nor its records are asked for.
[[nodiscard]] bool counts_cancelled_steps(const scenario& scenario);

/// Under `cancel` all replicas begin a step together, and none is left at its end: a step takes the
/// N-th smallest of the computing times, and no queue is needed to find it. The report is that of
/// the direct engine, but for its hash.
/// @pre `reason_for_actors(scenario)` is empty, and `counts_cancelled_steps(scenario)`.
/// Cost: a draw and a selection for each gradient.
/// Errors: as of `simulate`.
void count_cancelled_steps(const scenario& scenario, scenario_report& report);

} // namespace troupe
