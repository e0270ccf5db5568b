// SPDX-License-Identifier: Apache-2.0
// `troupe sim --plots DIR`: pictures of a simulation, and the numbers that they show.
#pragma once

#include "tools/sim/plots/plot_style.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// Makes the folder, unless it is there, before minutes of simulation; nothing if its name is
/// empty. Errors: resource, if it cannot be made or written.
[[nodiscard]] expected<void> make_plots_folder(const std::string& folder);

/// Writes NAME.csv, NAME.gp and, where gnuplot is, NAME.svg of every picture that there is.
/// @pre The folder is there.
/// @returns What was written and what not, and why, in lines for people.
/// Errors: resource, if the folder cannot be written.
[[nodiscard]] expected<std::string> write_plots(const std::string& folder,
                                                const std::vector<sim_plot>& plots);

/// Writes NAME.csv, NAME.gp and, where gnuplot is, NAME.svg for every picture that the rows allow;
/// of a single row also timeline.json, for https://ui.perfetto.dev.
/// @pre Every row has a profile, and the folder is there.
/// @returns What was written and what not, and why, in lines for people.
/// Errors: resource, if the folder cannot be written.
[[nodiscard]] expected<std::string> write_sim_plots(const sim_command& command,
                                                    const std::vector<sim_row>& rows);

} // namespace troupe
