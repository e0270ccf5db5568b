// SPDX-License-Identifier: Apache-2.0
// Writes the pictures of `troupe sim --plots DIR`, and the numbers that they show.
#pragma once

#include "tools/sim/plots/plot_style.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Writes NAME.csv, NAME.gp and, where gnuplot is, NAME.svg of every picture that there is.
/// @pre The folder is there.
/// @returns Lines about the files that were written, and about those that were not, with the
/// reason. Errors: resource, if the folder cannot be written.
[[nodiscard]] expected<std::string> write_plots(const std::string& folder,
                                                const std::vector<sim_plot>& plots);

/// Writes every picture that the rows allow, like `write_plots` and with its errors; of a single
/// row also timeline.json, for https://ui.perfetto.dev.
/// @pre Every row has a profile, and the folder is there.
[[nodiscard]] expected<std::string> write_sim_plots(const sim_command& command,
                                                    const std::vector<sim_row>& rows);

} // namespace troupe
