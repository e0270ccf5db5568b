// SPDX-License-Identifier: Apache-2.0
// The options of clusters and servers, with their ranges and descriptions.
#include "tools/options/cluster_arguments.hpp"

#include "actors/net/host_port.hpp"
#include "messages/checks/limits.hpp"

#include <cmath>

namespace troupe {

namespace {

option_value window_value(uint64_t& bytes) {
  constexpr auto mib = above(0, 1 << 20);
  return unwritten(single_value( // the default depends on the machine
    bytes, toml_form::number, "MiB " + to_string(mib),
    [mib](std::string_view text) -> std::optional<uint64_t> {
      auto number = real_of(text, mib);
      if (!number) return std::nullopt;
      return static_cast<uint64_t>(std::ceil(*number * (1 << 20)));
    },
    [](uint64_t) { return std::string{}; }));
}

option_value spin_value(std::optional<std::chrono::microseconds>& spin) {
  constexpr option_range range{.low = 0, .high = 1'000'000};
  return single_value(
    spin, toml_form::number, "microseconds " + to_string(range),
    [range](std::string_view text) { return whole_of(text, range); },
    [](std::chrono::microseconds bound) { return std::to_string(bound.count()); });
}

} // namespace

void add_options(command_options& all, cluster_options& options) {
  all.add("--cluster", "JOBS",
          "tasks and where they listen: \"chief=a:2222;ps=b:2222;worker=c:2222,d:2222\"; or "
          "how many of a launcher's processes each type takes, in alphabetical order: "
          "\"ps=1;worker=3\"",
          text_value(options.cluster), "as it says");
  all.add("--task", "TYPE:INDEX", "which of them this process is: worker:1",
          text_value(options.task));
  all.add("--cluster-file", "FILE", "TOML file with the tables [cluster] and [task] instead",
          text_value(options.file));
  all.add("--kubernetes", "JOBS",
          "ask Kubernetes which pods the tasks are, by label selectors: "
          "\"chief=app=chief;worker=app=worker\"",
          text_value(options.kubernetes));
  all.add("--kubernetes-api", "HOST:PORT", "a kubectl proxy to ask",
          parsed_value(options.kubernetes_api,
                       [](const std::string& text) {
                         return parse_host_port(text).map([&](const auto&) { return text; });
                       }),
          "that of the pod's own cluster, else 127.0.0.1:8001");
  all.add("--port-base", "PORT",
          "the first port where a launcher names hosts alone [8888]; the port of all pods",
          whole_value(options.port_base, {1, 65535}, "a port from 1 to 65535"), "8470");
  all.add("--interface", "CARDS",
          "network card to listen on: eth,ib (beginnings of names), =eth0 (exactly), ^docker "
          "(none of these)",
          text_value(options.interface), "NCCL_SOCKET_IFNAME");
}

void add_options(command_options& all, server_options& options) {
  auto& tls = options.tls.emplace();
  all.add("--job-id", "ID", "a name that other jobs do not have", text_value(options.job),
          "the launcher's");
  all.add("--tls-ca", "FILE",
          "speak TLS: certificate of the authority that has signed those of all tasks",
          text_value(tls.authority));
  all.add("--tls-certificate", "FILE", "this task's certificate", text_value(tls.certificate));
  all.add("--tls-key", "FILE", "its key", text_value(tls.key));
  all.add_flag("--insecure-network", options.insecure_network,
               "listen beyond this machine even without TLS");
  all.add("--start-deadline", "SECONDS", "how long tasks wait for each other",
          seconds_value(options.start_deadline, above(0, 86'400)));
  all.add("--window", "MIB",
          "how much of what one other task has sent may wait here; must be more than it sends "
          "in a step",
          window_value(options.window_bytes), "a quarter of the memory, at most 4096");
  all.add("--spin", "MICROSECONDS",
          "how long the network thread polls for messages before it sleeps; 0: no polling",
          spin_value(options.spin), "TROUPE_SPIN_US; else 50, or 0 where processors are few");
}

expected<void> settle(server_options& options) {
  if (options.job.size() > limits::text_bytes_max) // the other tasks would refuse this one
    return misuse(fmt::format("--job-id has {} bytes; give a name of at most {}",
                              options.job.size(), limits::text_bytes_max));
  const auto& [authority, certificate, key] = *options.tls;
  const auto given = !authority.empty() + !certificate.empty() + !key.empty();
  if (given != 0 && given != 3)
    return misuse(
      "--tls-ca, --tls-certificate and --tls-key belong together: give all three, or none");
  if (given == 0) options.tls.reset();
  return {};
}

} // namespace troupe
