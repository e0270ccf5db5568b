// SPDX-License-Identifier: Apache-2.0
// The figures of a running job for programs: Prometheus' text format, and JSON.
#pragma once

#include "actors/observing/job_figures.hpp"
#include "actors/observing/task_view.hpp"

#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// All figures in Prometheus' text format 0.0.4. Names are those of CAF >= 0.18 and of Prometheus'
/// own client libraries where these have one, so that dashboards carry over; ours begin with
/// `troupe_`. Actors of a process with the same name are shown as their sum, actors of a lost
/// process by their last figures, and actors that ended not at all.
/// @param tasks This process, if it is to be shown, and then the others.
/// @param now The world's time, which ages are counted from.
[[nodiscard]] std::string prometheus_text(const job_figures& job, std::span<const task_sight> tasks,
                                          job_time now);

/// All actors as a JSON array of objects, one line each. @param tasks, now As above.
[[nodiscard]] std::string actors_json(const job_figures& job, std::span<const task_sight> tasks,
                                      job_time now);

/// A label's value as Prometheus wants it: backslash, quote and line end escaped.
[[nodiscard]] std::string escaped_label(std::string_view value);

} // namespace troupe
