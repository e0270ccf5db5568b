// SPDX-License-Identifier: Apache-2.0
// The options as CLI11 takes them.
#include "tools/options/cluster_arguments.hpp"

#include "actors/net/host_port.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace troupe {

void add_cluster_options(CLI::App& app, cluster_arguments& raw) {
  app.add_option("--cluster", raw.cluster)->take_last();
  app.add_option("--task", raw.task)->take_last();
  app.add_option("--cluster-file", raw.file)->take_last();
  app.add_option("--kubernetes", raw.kubernetes)->take_last();
  app.add_option("--kubernetes-api", raw.kubernetes_api)->take_last();
  app.add_option("--port-base", raw.port_base)->take_last();
  app.add_option("--interface", raw.interface)->take_last();
}

expected<cluster_options> settled(const cluster_arguments& raw) {
  cluster_options options{.cluster = raw.cluster,
                          .task = raw.task,
                          .file = raw.file,
                          .kubernetes = raw.kubernetes,
                          .kubernetes_api = raw.kubernetes_api,
                          .interface = raw.interface};
  if (auto api = parse_host_port(raw.kubernetes_api); !raw.kubernetes_api.empty() && !api)
    return fail(errc::invalid_argument, fmt::format("--kubernetes-api: {}", api.error().message));
  if (raw.port_base.empty()) return options;
  auto port = parse_count(raw.port_base, 65535);
  if (!port || *port == 0)
    return fail(errc::invalid_argument,
                fmt::format("--port-base must be a port from 1 to 65535, not '{}'", raw.port_base));
  options.port_base = static_cast<uint16_t>(*port);
  return options;
}

} // namespace troupe
