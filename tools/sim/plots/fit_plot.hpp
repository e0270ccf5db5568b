// SPDX-License-Identifier: Apache-2.0
// Draws a trace, and the distributions that fit it best.
#pragma once

#include "simulation/fitting/trace_fit.hpp"
#include "tools/sim/plots/plot_style.hpp"

#include <string>

namespace troupe {

/// The cumulative distribution of usual times, as measured and as fitted by the two best families,
/// with the longest tenth in a panel of its own.
[[nodiscard]] sim_plot fit_plot(const std::string& trace, const trace_fit& fit);

} // namespace troupe
