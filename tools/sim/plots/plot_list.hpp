// SPDX-License-Identifier: Apache-2.0
// Declares all pictures of simulations.
#pragma once

#include "tools/sim/plots/plot_style.hpp"

#include <vector>

namespace troupe {

using sim_rows = std::vector<sim_row>;

/// How long steps took: a distribution for each row, with its tail.
[[nodiscard]] sim_plot step_time_plot(const sim_command& command, const sim_rows& rows);

/// When the k-th gradient of a step came: mean, median, and where most of them are.
[[nodiscard]] sim_plot arrivals_plot(const sim_command& command, const sim_rows& rows);

/// Step time and speed-up by backups.
[[nodiscard]] sim_plot backups_plot(const sim_command& command, const sim_rows& rows);

/// Time to the goal by the gradients of a step.
[[nodiscard]] sim_plot convergence_plot(const sim_command& command, const sim_rows& rows);

/// Time to the goal by two swept options.
[[nodiscard]] sim_plot grid_plot(const sim_command& command, const sim_rows& rows);

/// The loss by time.
[[nodiscard]] sim_plot loss_plot(const sim_command& command, const sim_rows& rows);

/// The fates of gradients, and the uses of the replicas' time.
[[nodiscard]] sim_plot work_plot(const sim_command& command, const sim_rows& rows);

/// By how many updates gradients were late.
[[nodiscard]] sim_plot staleness_plot(const sim_command& command, const sim_rows& rows);

/// Each replica's gradients.
[[nodiscard]] sim_plot contributions_plot(const sim_command& command, const sim_rows& rows);

/// The states of replicas over time.
[[nodiscard]] sim_plot timeline_plot(const sim_command& command, const sim_rows& rows);

/// How many times as long as usual each replica took, over the steps.
[[nodiscard]] sim_plot slow_down_plot(const sim_command& command, const sim_rows& rows);

/// All pictures; `why_not` of each that the rows do not allow says why.
[[nodiscard]] std::vector<sim_plot> sim_plots(const sim_command& command, const sim_rows& rows);

} // namespace troupe
