// SPDX-License-Identifier: Apache-2.0
// The options with which every command that starts a job is told its cluster.
#pragma once

#include "strategies/cluster/cluster_flags.hpp"

#include <array>
#include <string>
#include <string_view>

namespace CLI {
class App;
} // namespace CLI

namespace troupe {

/// Their names, for "did you mean ...?".
inline constexpr std::array<std::string_view, 7> cluster_option_names{
  "cluster", "task", "cluster-file", "kubernetes", "kubernetes-api", "port-base", "interface"};

/// What stood on the command line.
struct cluster_arguments {
  std::string cluster;
  std::string task;
  std::string file;
  std::string kubernetes;
  std::string kubernetes_api;
  std::string port_base;
  std::string interface;
};

/// Adds the options to those of a command; `raw` gets their values when `app` is parsed and must
/// live until then.
void add_cluster_options(CLI::App& app, cluster_arguments& raw);

/// The values that make sense on their own; whether the cluster does is `resolve`'s business.
/// Errors: invalid_argument for a --port-base that is no port, and a --kubernetes-api that is no
/// HOST:PORT.
[[nodiscard]] expected<cluster_options> settled(const cluster_arguments& raw);

} // namespace troupe
