// SPDX-License-Identifier: Apache-2.0
// Addresses and devices, as all resolvers name them.
#include "strategies/cluster/cluster_resolver.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

// "worker" of "/job:worker/task:1/device:GPU:0" for "/job:".
std::string part_of(const std::string& device, std::string_view key) {
  auto begin = device.find(key);
  if (begin == std::string::npos) return {};
  begin += key.size();
  return device.substr(begin, device.find('/', begin) - begin);
}

} // namespace

std::map<std::string, uint64_t> cluster_resolver::num_accelerators(const task_query&) const {
  return {};
}

std::string cluster_resolver::address_of(const task_query& query) const {
  auto type = query.task_type ? query.task_type : task_type();
  auto id = query.task_id ? query.task_id : task_id();
  if (!type || !id) return {};
  auto layer = query.rpc_layer ? query.rpc_layer : rpc_layer();
  return format_master_url(cluster_spec().task_address(*type, *id), layer);
}

std::string format_master_url(const std::string& address,
                              const std::optional<std::string>& rpc_layer) {
  if (!rpc_layer || rpc_layer->empty()) return address;
  return fmt::format("{}://{}", *rpc_layer, address);
}

std::map<std::string, uint64_t> count_accelerators(std::span<const std::string> devices,
                                                   const task_query& query) {
  std::map<std::string, uint64_t> counts;
  for (const auto& device : devices) {
    auto kind = part_of(device, "/device:");
    kind = kind.substr(0, kind.find(':'));
    if (kind.empty() || kind.find("CPU") != std::string::npos) continue;
    auto is_of_task = !query.task_type || !query.task_id
                      || (part_of(device, "/job:") == *query.task_type
                          && part_of(device, "/task:") == std::to_string(*query.task_id));
    if (is_of_task) ++counts[kind];
  }
  return counts;
}

} // namespace troupe
