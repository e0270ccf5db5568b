// SPDX-License-Identifier: Apache-2.0
// Chooses cross-device operations by name, or by the devices.
#include "strategies/reduce/cross_device_choice.hpp"

#include "messages/errors/throw_failure.hpp"
#include "messages/text.hpp"
#include "strategies/reduce/hierarchical_copy_all_reduce.hpp"
#include "strategies/reduce/nccl_all_reduce.hpp"
#include "strategies/reduce/reduction_on_device.hpp"

#include <algorithm>

namespace troupe {

namespace {

std::shared_ptr<const cross_device_ops> make_nccl(const std::vector<std::string>& devices,
                                                  const gpu_source& gpus) {
  if (!are_gpus(devices))
    throw_failure(errc::invalid_argument,
                  "nccl_all_reduce is for GPUs; name those of the strategy, as in gpu:0, gpu:1");
  auto opened = open_gpus(devices, gpus);
  return std::make_shared<nccl_all_reduce>(std::move(opened),
                                           value_or_throw(gpus.open_collectives()));
}

// The devices that replicas compute on, each once, in the order in which replicas get them.
// @param devices One for each replica.
std::vector<std::string> gpus_of(std::span<const std::string> devices,
                                 std::span<const std::shared_ptr<compute_device>> computing) {
  if (are_gpus(devices)) return {devices.begin(), devices.end()};
  std::vector<std::string> names;
  for (const auto& device : computing.first(std::min(computing.size(), devices.size())))
    if (auto name = to_string(device->where());
        device->where().kind == device_kind::cuda && std::ranges::count(names, name) == 0)
      names.push_back(std::move(name));
  return names;
}

std::shared_ptr<const cross_device_ops> make_hierarchical(const std::vector<std::string>& devices,
                                                          const gpu_source& gpus) {
  if (!are_gpus(devices)) return std::make_shared<hierarchical_copy_all_reduce>();
  return std::make_shared<hierarchical_copy_all_reduce>(open_gpus(devices, gpus));
}

} // namespace

std::shared_ptr<const cross_device_ops>
make_cross_device_ops(std::string_view name, const std::vector<std::string>& devices,
                      const gpu_source& gpus) {
  auto known = lower_case(name);
  auto named = canonical_devices(devices);
  if (known == "reduction_to_one_device") return reduce_on_one_of(named, gpus);
  if (known == "all_reduce") return std::make_shared<all_reduce_ops>();
  if (known == "hierarchical_copy_all_reduce") return make_hierarchical(named, gpus);
  if (known == "nccl_all_reduce" || known == "nccl") return make_nccl(named, gpus);
  throw_failure(errc::not_found,
                "there are no cross-device operations '{}'; there are reduction_to_one_device, "
                "all_reduce, hierarchical_copy_all_reduce and nccl_all_reduce",
                name);
}

std::shared_ptr<const cross_device_ops>
choose_cross_device_ops(std::span<const std::string> devices, const gpu_source& gpus,
                        std::span<const std::shared_ptr<compute_device>> computing) {
  auto names = gpus_of(devices, computing);
  if (names.size() > 1)
    if (auto library = gpus.open_collectives())
      return std::make_shared<nccl_all_reduce>(open_gpus(names, gpus), *library);
  return reduce_on_one_of(devices, gpus, computing);
}

// The operations get a handle of their own: no work of replicas may come between reductions. Shared
// memory needs no copies, and no packs that make them fewer.
std::shared_ptr<const cross_device_ops>
reduce_on_one_of(std::span<const std::string> devices, const gpu_source& gpus,
                 std::span<const std::shared_ptr<compute_device>> computing) {
  auto names = gpus_of(devices, computing);
  if (names.empty()) return std::make_shared<reduction_to_one_device>();
  return std::make_shared<reduction_on_device>(open_gpus({names.data(), 1}, gpus).front());
}

} // namespace troupe
