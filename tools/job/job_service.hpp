// SPDX-License-Identifier: Apache-2.0
// Serves the web page and the metrics of a running job.
#pragma once

#include "strategies/cluster/environment.hpp"
#include "strategies/jobs/metrics_server_hook.hpp"
#include "tools/options/job_options.hpp"
#include "tools/report/live_page.hpp"
#include "tools/run/quality_measure.hpp"

#include <memory>
#include <string>

namespace troupe {

/// The page and the metrics that `--metrics-port` serves. Both are hooks of the job.
struct job_service {
  std::shared_ptr<live_page> page; ///< Outlives the server, which calls it.
  std::shared_ptr<metrics_server_hook> server;
  std::string token; ///< The token that clients have to send; empty: none.

  /// Lines that name the addresses.
  [[nodiscard]] std::string text() const;
};

/// Serves a job at its --metrics-address, from now on. Clients need the token that
/// TROUPE_METRICS_TOKEN names, or one that is drawn where other machines reach the address.
/// @param options With a port.
/// Errors: invalid_argument, if the variable holds no token; resource, if the server cannot listen
/// there. The line names the variable or the options.
[[nodiscard]] expected<job_service> serve_job(const job_options& options,
                                              const quality_measure& measure,
                                              const environment_reader& environment);

} // namespace troupe
