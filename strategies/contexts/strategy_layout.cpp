// SPDX-License-Identifier: Apache-2.0
// Refuses layouts that no strategy can have.
#include "actors/recording/seconds.hpp"
#include "actors/world/compute_device.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/contexts/strategy.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>

namespace troupe {

namespace {

void check_not_null(std::span<const std::shared_ptr<compute_device>> devices,
                    std::string_view name) {
  auto missing = std::ranges::find(devices, nullptr) - devices.begin();
  if (missing < std::ssize(devices))
    throw_failure(errc::invalid_argument, "{}[{}] is no device", name, missing);
}

// Where variables lie on devices, each lies in one place.
void check_variable_devices(const strategy_layout& layout) {
  const auto& devices = layout.variable_devices;
  if (devices.empty()) return;
  if (layout.owner_copies > 1)
    throw_failure(errc::invalid_argument,
                  "variables that two parameter servers hold lie in the host's memory; leave "
                  "variable_devices empty, or replicate_owners at 1");
  for (size_t i = 0; i < devices.size(); ++i) {
    auto is_same = [&](const auto& other) { return other->where() == devices[i]->where(); };
    if (layout.mirrors_variables
        && std::any_of(devices.begin(), devices.begin() + static_cast<ptrdiff_t>(i), is_same))
      throw_failure(
        errc::invalid_argument,
        "{} is in variable_devices twice; a {} strategy has one copy of each variable on each "
        "device",
        devices[i]->name(), layout.name);
    if (std::ranges::count(layout.compute_devices, devices[i]) > 0)
      throw_failure(
        errc::invalid_argument,
        "{} is one of compute_devices, and of variable_devices, too; open it once more, so that "
        "updates do not wait for what replicas compute",
        devices[i]->name());
  }
}

} // namespace

void check_layout(const strategy_layout& layout) {
  const auto& devices = layout.worker_devices;
  if (devices.empty())
    throw_failure(errc::invalid_argument, "a {} strategy needs at least 1 replica", layout.name);
  for (auto device = devices.begin(); device != devices.end(); ++device)
    if (std::find(devices.begin(), device, *device) != device)
      throw_failure(errc::invalid_argument, "device {} is given twice; each device is one replica",
                    *device);
  if (!layout.variable_load)
    throw_failure(errc::invalid_argument,
                  "a {} strategy was given no function that weighs variables", layout.name);
  if (layout.deadline <= job_time{0})
    throw_failure(errc::invalid_argument,
                  "the deadline of a {} strategy is {} s; it must be positive", layout.name,
                  seconds(layout.deadline));
  check_not_null(layout.compute_devices, "compute_devices");
  check_not_null(layout.variable_devices, "variable_devices");
  check_variable_devices(layout);
  check_owner_copies(layout);
}

} // namespace troupe
