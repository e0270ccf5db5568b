// SPDX-License-Identifier: Apache-2.0
// Opens the devices that options name.
#include "tools/job/job_devices.hpp"

#include "actors/gpu/collective_library.hpp"
#include "actors/gpu/device_list.hpp"
#include "actors/gpu/nccl_collectives.hpp"

#include <fmt/format.h>
#include <span>
#include <string>
#include <utility>

namespace troupe {

namespace {

// The same result; its error begins with the option that asked for it.
template <class T>
expected<T> naming(const std::string& option, expected<T> result) {
  if (result) return result;
  return fail(result.error().code, fmt::format("{}: {}", option, result.error().message));
}

// Streams for the updates of variables on one GPU.
constexpr uint32_t update_streams = 4;

// Whether the variables of this process are read on its GPUs alone.
bool lie_beside_replicas(const job_options& options, const resolved_cluster& cluster) {
  return replicas_meet(options.strategy) || (cluster.is_alone() && options.replicate_owners == 1);
}

// The option that says where the variables of this process lie, and the names of the devices.
std::pair<std::string, std::string> variable_devices(const job_options& options,
                                                     const resolved_cluster& cluster) {
  if (!options.variable_device.empty()) return {"--variable-device", options.variable_device};
  return {"--device", lie_beside_replicas(options, cluster) ? options.device : "cpu"};
}

expected<std::vector<std::shared_ptr<compute_device>>>
open_named(const std::string& option, const std::string& names, uint32_t streams) {
  auto named = read_devices(names);
  if (!named || named->empty()) return {};
  return naming(fmt::format("{} {}", option, names), open_devices(*named, streams));
}

} // namespace

expected<job_devices> find_devices(const job_options& options, const resolved_cluster& cluster) {
  job_devices found;
  if (cluster.is_evaluator()) return found;
  auto [option, names] = variable_devices(options, cluster);
  auto holding = open_named(option, names, update_streams);
  if (!holding) return tl::unexpected<error>(holding.error());
  found.holding = std::move(*holding);
  if (cluster.self().type == "ps") return found;
  auto computing = open_named("--device", options.device, static_cast<uint32_t>(options.replicas));
  if (!computing) return tl::unexpected<error>(computing.error());
  found.computing = std::move(*computing);
  if (options.communication != communication_implementation::nccl) return found;
  auto collectives = naming("--communication nccl", open_nccl());
  if (!collectives) return tl::unexpected<error>(collectives.error());
  found.collectives = std::move(*collectives);
  const auto named = read_devices(options.device).value(); // opened above, and checked to be GPUs
  auto reducing = naming(fmt::format("--device {}", options.device),
                         open_devices(std::span{named}.first(1), 1));
  if (!reducing) return tl::unexpected<error>(reducing.error());
  found.reducing = reducing->front();
  return found;
}

} // namespace troupe
