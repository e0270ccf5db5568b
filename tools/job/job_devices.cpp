// SPDX-License-Identifier: Apache-2.0
// Options into devices.
#include "tools/job/job_devices.hpp"

#include "actors/gpu/collective_library.hpp"
#include "actors/gpu/device_list.hpp"
#include "actors/gpu/nccl_collectives.hpp"

#include <fmt/format.h>
#include <span>
#include <string>

namespace troupe {

namespace {

// What was asked for in vain, and by which option.
template <class T>
expected<T> asked_for(const std::string& option, expected<T> found) {
  if (found) return found;
  return fail(found.error().code, fmt::format("{}: {}", option, found.error().message));
}

} // namespace

expected<job_devices> find_devices(const job_options& options, const resolved_cluster& cluster) {
  job_devices found;
  auto has_replicas = cluster.self().type != "ps" && !cluster.is_evaluator();
  auto named = read_devices(options.device);
  if (!named || named->empty() || !has_replicas) return found;
  auto option = fmt::format("--device {}", options.device);
  auto opened = asked_for(option, open_devices(*named, static_cast<uint32_t>(options.replicas)));
  if (!opened) return tl::unexpected<error>(opened.error());
  found.computing = std::move(*opened);
  if (options.communication != communication_implementation::nccl) return found;
  auto collectives = asked_for("--communication nccl", open_nccl());
  if (!collectives) return tl::unexpected<error>(collectives.error());
  found.collectives = std::move(*collectives);
  auto reducing = asked_for(option, open_devices(std::span{*named}.first(1), 1));
  if (!reducing) return tl::unexpected<error>(reducing.error());
  found.reducing = reducing->front();
  return found;
}

} // namespace troupe
