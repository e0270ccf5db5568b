// SPDX-License-Identifier: Apache-2.0
// The options that say how a process speaks to the others of its job.
#pragma once

#include "strategies/cluster/server.hpp"

#include <array>
#include <string>
#include <string_view>

namespace CLI {
class App;
} // namespace CLI

namespace troupe {

/// Their names, for "did you mean ...?".
inline constexpr std::array<std::string_view, 7> server_option_names{
  "job-id", "tls-ca", "tls-certificate", "tls-key", "insecure-network", "start-deadline", "window"};

/// What stood on the command line.
struct server_arguments {
  std::string job;
  tls_files tls;
  bool insecure_network = false;
  std::string start_deadline; ///< Seconds.
  std::string window;         ///< MiB.
};

/// Adds the options to those of a command; `raw` gets their values when `app` is parsed and must
/// live until then.
void add_server_options(CLI::App& app, server_arguments& raw);

/// Errors: invalid_argument for a deadline that is no time, a window that is no size, and for one
/// or two of the three files of TLS.
[[nodiscard]] expected<server_options> settled(const server_arguments& raw);

} // namespace troupe
