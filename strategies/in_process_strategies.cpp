// SPDX-License-Identifier: Apache-2.0
// What makes each of the strategies of one process what it is.
#include "actors/failure.hpp"
#include "strategies/central_storage_strategy.hpp"
#include "strategies/default_strategy.hpp"
#include "strategies/mirrored_strategy.hpp"
#include "strategies/one_device_strategy.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <fmt/format.h>

namespace troupe {

namespace {

std::atomic<default_strategy*> the_default_strategy{nullptr};

// "CPU:1", "/device:CPU:1" and "cpu:1" are one device.
std::string canonical(std::string device) {
  auto refuse = [&] {
    throw failure{
      {errc::invalid_argument,
       fmt::format("there is no device '{}'; processors are cpu:0, cpu:1 and so on", device)}};
  };
  auto name = device;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.starts_with("/device:")) name = name.substr(8);
  if (!name.starts_with("cpu:")) refuse();
  uint32_t index = 0;
  const auto* end = name.data() + name.size();
  auto [stop, wrong] = std::from_chars(name.data() + 4, end, index);
  if (wrong != std::errc{} || stop != end) refuse();
  return fmt::format("cpu:{}", index);
}

std::vector<std::string> canonical(std::vector<std::string> devices) {
  for (auto& device : devices)
    device = canonical(std::move(device));
  return devices;
}

strategy_layout layout_of(mirrored_options options) {
  auto layout = mirrored_layout(std::move(options.devices));
  layout.cross_device_operations = std::move(options.cross_device_operations);
  layout.deadline = options.deadline;
  layout.compute_devices = std::move(options.compute_devices);
  return layout;
}

strategy_layout layout_of(central_storage_options options) {
  auto devices = canonical(std::move(options.compute_devices));
  auto parameters
    = canonical(options.parameter_device.value_or(devices.size() == 1 ? devices.front() : "cpu:0"));
  return {.name = "central_storage",
          .worker_devices = devices,
          .parameter_devices = {parameters},
          .experimental_between_graph = true,
          .cross_device_operations = std::make_shared<reduction_to_one_device>(parameters),
          .deadline = options.deadline};
}

strategy_layout layout_of_one(std::string name, std::string device) {
  return {.name = std::move(name), .worker_devices = {device}, .parameter_devices = {device}};
}

strategy_layout layout_of_default() {
  auto layout = layout_of_one("default", "cpu:0");
  layout.has_devices = false;
  return layout;
}

} // namespace

std::vector<std::string> cpu_devices(uint32_t count) {
  std::vector<std::string> devices;
  for (uint32_t i = 0; i < count; ++i)
    devices.push_back(fmt::format("cpu:{}", i));
  return devices;
}

strategy_layout mirrored_layout(std::vector<std::string> devices) {
  devices = canonical(std::move(devices));
  return {.name = "mirrored",
          .worker_devices = devices,
          .parameter_devices = devices,
          .mirrors_variables = true,
          .makes_input_per_replica = true};
}

mirrored_strategy::mirrored_strategy(troupe::world& world, mirrored_options options)
  : strategy(world, layout_of(std::move(options))) {}

central_storage_strategy::central_storage_strategy(troupe::world& world,
                                                   central_storage_options options)
  : strategy(world, layout_of(std::move(options))) {}

one_device_strategy::one_device_strategy(troupe::world& world, std::string device)
  : strategy(world, layout_of_one("one_device", canonical(std::move(device)))) {}

default_strategy::default_strategy(troupe::world& world) : strategy(world, layout_of_default()) {
  default_strategy* none = nullptr;
  if (!the_default_strategy.compare_exchange_strong(none, this))
    throw failure{{errc::failed_precondition,
                   "there is a default strategy already, and there can be but one; use "
                   "get_strategy()"}};
}

default_strategy::~default_strategy() {
  default_strategy* self = this;
  the_default_strategy.compare_exchange_strong(self, nullptr);
}

default_strategy* default_strategy::instance() {
  return the_default_strategy;
}

} // namespace troupe
