// SPDX-License-Identifier: Apache-2.0
// Finds and opens devices by their names.
#include "strategies/reduce/named_devices.hpp"

#include "actors/world/compute_device.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <fmt/ranges.h>

namespace troupe {

namespace {

bool is_gpu(const std::string& name) {
  return name.starts_with("gpu:");
}

std::string canonical(const std::string& name) {
  auto found = read_device(name);
  if (!found)
    throw_failure(
      errc::invalid_argument,
      "there is no device '{}'; processors are cpu:0, cpu:1 and so on, GPUs gpu:0, gpu:1", name);
  return to_string(*found);
}

} // namespace

std::vector<std::string> canonical_devices(std::vector<std::string> names) {
  std::ranges::transform(names, names.begin(), canonical);
  return names;
}

bool are_gpus(std::span<const std::string> names) {
  return !names.empty() && std::ranges::all_of(names, is_gpu);
}

std::vector<std::shared_ptr<compute_device>> open_gpus(std::span<const std::string> names,
                                                       const gpu_source& gpus) {
  if (std::ranges::none_of(names, is_gpu)) return {};
  if (!are_gpus(names))
    throw_failure(errc::invalid_argument, "{} are processors and GPUs; give devices of one kind",
                  fmt::join(names, ", "));
  auto named = mapped(names, [](const auto& name) { return value_or_throw(read_device(name)); });
  auto opened = gpus.open(named, static_cast<uint32_t>(named.size()));
  if (!opened)
    throw_failure(opened.error().code, "{}: {}", fmt::join(names, ", "), opened.error().message);
  return std::move(*opened);
}

} // namespace troupe
