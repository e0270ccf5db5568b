// SPDX-License-Identifier: Apache-2.0
// Draws the plots of a run: loss.svg and steps.svg.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/run/quality_measure.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// A horizontal line to compare the loss with.
struct plot_baseline {
  std::string name;            ///< "gzip -9"
  double value = 0;            ///< In the measure of the run.
  bool after_training = false; ///< Measured after the compressor had read the training text.
};

/// The gnuplot script that draws loss.svg from metrics.csv in the folder it is run in: training
/// loss, as `measure` shows it, and evaluations by step, and the baselines.
[[nodiscard]] std::string loss_script(const quality_measure& measure,
                                      std::vector<plot_baseline> baselines);

/// The gnuplot script that draws steps.svg from metrics.csv and replicas.csv in the folder it is
/// run in: the time of each step and its distribution; for each replica, the verdicts on its
/// gradients and the use of its time.
[[nodiscard]] std::string steps_script();

/// Writes loss.gp and steps.gp into the folder of a run.
/// Errors: `resource`.
[[nodiscard]] expected<void> write_plot_scripts(const std::filesystem::path& folder,
                                                const quality_measure& measure,
                                                std::vector<plot_baseline> baselines);

/// The plots of a run. A trainer that reports no losses has only that of the steps.
enum class plots_of : uint8_t { losses_and_steps, steps };

/// Has gnuplot draw the plots of the scripts in `folder`, as `draw_pictures` of gnuplot.hpp.
/// Errors: as `draw_pictures`. The caller prints `plot_command` then.
[[nodiscard]] expected<void> draw_plots(const std::filesystem::path& folder,
                                        plots_of plots = plots_of::losses_and_steps);

/// The shell command that draws the plots in `folder`.
[[nodiscard]] std::string plot_command(const std::filesystem::path& folder,
                                       plots_of plots = plots_of::losses_and_steps);

} // namespace troupe
