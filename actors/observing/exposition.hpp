// SPDX-License-Identifier: Apache-2.0
// What programs read of a running job: Prometheus' text format, and JSON.
#pragma once

#include "actors/observing/job_figures.hpp"
#include "actors/observing/observatory.hpp"

#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// What the operating system knows of this process.
struct process_figures {
  uint64_t resident_bytes = 0;
  double cpu_seconds = 0;
};

/// Asks the operating system. Zeros where it does not tell.
[[nodiscard]] process_figures look_at_process();

/// All figures in Prometheus' text format 0.0.4. Names are those of CAF >= 0.18 and of Prometheus'
/// own client libraries where these have one, so that dashboards carry over; ours begin with
/// `troupe_`. Of several actors with one name the sum is shown, of those that ended nothing.
[[nodiscard]] std::string prometheus_text(const job_figures& job,
                                          std::span<const actor_sight> actors,
                                          const process_figures& process);

/// The actors as a JSON array of objects, one line each.
/// @param now The world's time, which ages are counted from.
[[nodiscard]] std::string actors_json(std::span<const actor_sight> actors, job_time now);

/// A label's value as Prometheus wants it: backslash, quote and line end escaped.
[[nodiscard]] std::string escaped_label(std::string_view value);

} // namespace troupe
