// SPDX-License-Identifier: Apache-2.0
// The picture of a trace and of what fits it.
#pragma once

#include "simulation/fitting/trace_fit.hpp"
#include "tools/sim/plots/plot_style.hpp"

#include <string>

namespace troupe {

/// The share of usual times that are no longer: measured, and of the two best fits; with the
/// longest tenth apart.
[[nodiscard]] sim_plot fit_plot(const std::string& trace, const trace_fit& fit);

} // namespace troupe
