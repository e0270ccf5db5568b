// SPDX-License-Identifier: Apache-2.0
// Devices by name: the only file that knows whether this build has GPU support.
#include "actors/gpu/device_list.hpp"

#include "messages/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#if TROUPE_CUDA
#  include "actors/gpu/cuda_device.hpp"
#  include "kernels/cuda/device.hpp"
#endif

namespace troupe {

namespace {

#if TROUPE_CUDA
expected<void> check_present(std::span<const device> named) {
  auto count = cuda::device_count();
  if (!count) return tl::unexpected<error>(count.error());
  for (const auto& device : named)
    if (device.index >= *count)
      return *count == 0 ? fail(errc::unavailable, "there is no GPU here, or no driver for one")
                         : fail(errc::not_found,
                                fmt::format("there is no gpu:{} here: the last one is gpu:{}",
                                            device.index, *count - 1));
  return {};
}
#else
expected<void> check_present(std::span<const device>) {
  return fail(errc::unimplemented,
              "this build has no GPU support: build Troupe where nvcc is, with -Dcuda=enabled");
}

expected<std::shared_ptr<compute_device>> open_cuda_device(int, uint32_t) {
  return fail(errc::unimplemented, "this build has no GPU support"); // found out before
}
#endif

} // namespace

expected<device> read_device(std::string_view written) {
  auto name = lower_case(written);
  if (name.starts_with("/device:")) name = name.substr(8);
  auto is_gpu = name.starts_with("gpu:");
  auto index = is_gpu || name.starts_with("cpu:") ? number_of<int>(std::string_view{name}.substr(4))
                                                  : std::nullopt;
  if (index && *index >= 0) return device{is_gpu ? device_kind::cuda : device_kind::cpu, *index};
  return fail(errc::invalid_argument, fmt::format("'{}' is no device", written));
}

expected<std::vector<device>> read_devices(std::string_view names) {
  std::vector<device> devices;
  if (names == "cpu" || names == "CPU") return devices;
  for (size_t begin = 0; begin <= names.size();) {
    auto end = std::min(names.find(',', begin), names.size());
    auto written = names.substr(begin, end - begin);
    auto device = read_device(written);
    if (!device || device->kind != device_kind::cuda)
      return fail(errc::invalid_argument,
                  fmt::format("'{}' is no device: give cpu, or GPUs as in gpu:0,gpu:1", written));
    if (std::ranges::count(devices, *device) > 0)
      return fail(
        errc::invalid_argument,
        fmt::format("{} is named twice: name it once, and replicas share it", to_string(*device)));
    devices.push_back(*device);
    begin = end + 1;
  }
  return devices;
}

expected<std::vector<std::shared_ptr<compute_device>>> open_devices(std::span<const device> named,
                                                                    uint32_t users) {
  std::vector<std::shared_ptr<compute_device>> opened;
  if (named.empty()) return opened;
  if (auto present = check_present(named); !present) return tl::unexpected<error>(present.error());
  auto streams = std::max(1U, static_cast<uint32_t>((users + named.size() - 1) / named.size()));
  for (const auto& device : named) {
    auto cuda_device = open_cuda_device(device.index, streams);
    if (!cuda_device) return tl::unexpected<error>(cuda_device.error());
    opened.push_back(std::move(*cuda_device));
  }
  return opened;
}

} // namespace troupe
