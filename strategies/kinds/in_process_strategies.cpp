// SPDX-License-Identifier: Apache-2.0
// Lays out the strategies of one process.
#include "messages/errors/failure.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/default_strategy.hpp"
#include "strategies/kinds/central_storage_strategy.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/one_device_strategy.hpp"
#include "strategies/reduce/cross_device_choice.hpp"

#include <atomic>
#include <fmt/format.h>

namespace troupe {

namespace {

std::atomic<default_strategy*> the_default_strategy{nullptr};

strategy_layout layout_of(mirrored_options options) {
  auto layout = mirrored_layout(std::move(options.devices));
  layout.deadline = options.deadline;
  layout.compute_devices = std::move(options.compute_devices);
  layout.variable_devices = std::move(options.variable_devices);
  layout.cross_device_operations = std::move(options.cross_device_operations);
  open_named_devices(layout, options.gpus);
  if (!layout.cross_device_operations)
    layout.cross_device_operations
      = choose_cross_device_ops(layout.worker_devices, options.gpus, layout.compute_devices);
  return layout;
}

strategy_layout layout_of(central_storage_options options) {
  auto devices = canonical_devices(std::move(options.compute_devices));
  auto parameters = canonical_devices(
    {options.parameter_device.value_or(devices.size() == 1 ? devices.front() : "cpu:0")});
  strategy_layout layout{.name = "central_storage",
                         .worker_devices = devices,
                         .parameter_devices = parameters,
                         .experimental_between_graph = true,
                         .deadline = options.deadline,
                         .variable_devices = std::move(options.variable_devices)};
  open_named_devices(layout, options.gpus);
  layout.cross_device_operations = reduce_on_one_of(devices, options.gpus);
  return layout;
}

strategy_layout one_device_layout(std::string name, std::string device, const gpu_source& gpus,
                                  std::vector<std::shared_ptr<compute_device>> variable_devices) {
  auto devices = canonical_devices({std::move(device)});
  strategy_layout layout{.name = std::move(name),
                         .worker_devices = devices,
                         .parameter_devices = devices,
                         .variable_devices = std::move(variable_devices)};
  open_named_devices(layout, gpus);
  layout.cross_device_operations = reduce_on_one_of(devices, gpus);
  return layout;
}

strategy_layout layout_of_default() {
  auto layout = one_device_layout("default", "cpu:0", {}, {});
  layout.has_devices = false;
  return layout;
}

} // namespace

void open_named_devices(strategy_layout& layout, const gpu_source& gpus) {
  check_layout(layout);
  if (layout.compute_devices.empty())
    layout.compute_devices = open_gpus(layout.worker_devices, gpus);
  else if (are_gpus(layout.worker_devices))
    throw_failure(
      errc::invalid_argument,
      "a {} strategy was given GPUs by name, and compute_devices, too; give one of them",
      layout.name);
  if (layout.variable_devices.empty())
    layout.variable_devices = open_gpus(layout.parameter_devices, gpus);
}

std::vector<std::string> cpu_devices(uint32_t count) {
  if (auto given = static_cast<int32_t>(count); given < 0) // unsigned, it is 2^32 too many
    throw_failure(errc::invalid_argument, "cpu_devices: count is {}; it must not be negative",
                  given);
  std::vector<std::string> devices;
  for (uint32_t i = 0; i < count; ++i)
    devices.push_back(fmt::format("cpu:{}", i));
  return devices;
}

strategy_layout mirrored_layout(std::vector<std::string> devices) {
  devices = canonical_devices(std::move(devices));
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

one_device_strategy::one_device_strategy(
  troupe::world& world, std::string device, const gpu_source& gpus,
  std::vector<std::shared_ptr<compute_device>> variable_devices)
  : strategy(
    world, one_device_layout("one_device", std::move(device), gpus, std::move(variable_devices))) {}

default_strategy::default_strategy(troupe::world& world) : strategy(world, layout_of_default()) {
  default_strategy* none = nullptr;
  if (!the_default_strategy.compare_exchange_strong(none, this))
    throw_failure(
      errc::failed_precondition,
      "there is a default strategy already, and there can be but one; use get_strategy()");
}

default_strategy::~default_strategy() {
  default_strategy* self = this;
  the_default_strategy.compare_exchange_strong(self, nullptr);
}

default_strategy* default_strategy::instance() {
  return the_default_strategy;
}

} // namespace troupe
