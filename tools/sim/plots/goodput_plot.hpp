// SPDX-License-Identifier: Apache-2.0
// Draws how much of a job's time is useful work, by its backups.
#pragma once

#include "tools/sim/goodput.hpp"
#include "tools/sim/plots/plot_style.hpp"

#include <vector>

namespace troupe {

/// Useful work over the time of all nodes, by the number of backups: a line for each number of
/// nodes. @param rows As `goodput_rows` gives them.
[[nodiscard]] sim_plot goodput_plot(const goodput_command& command,
                                    const std::vector<goodput_row>& rows);

} // namespace troupe
