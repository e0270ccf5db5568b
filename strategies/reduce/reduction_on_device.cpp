// SPDX-License-Identifier: Apache-2.0
// Asks one device for sums, and waits for it.
#include "strategies/reduce/reduction_on_device.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/reduce/on_host.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

reduction_on_device::reduction_on_device(std::shared_ptr<compute_device> device, job_time deadline)
  : packed_all_reduce(0), devices_({std::move(device)}, deadline) {}

reduction_on_device::place
reduction_on_device::where_to_add(std::span<const tensor> components) const {
  auto is_there = std::ranges::any_of(components, is_on_device);
  auto has_bus = devices_[0].where().kind != device_kind::cpu;
  if (has_bus && !is_there) return place::host;
  if (devices_.adds(components, name())) return place::here;
  return is_there ? place::host_after_copies : place::host;
}

// A value of another device comes by way of this one.
tensor reduction_on_device::fetched(const tensor& value) const {
  if (!is_on_device(value)) return value;
  auto& stream = devices_.stream(0);
  auto there = devices_.answer_of(0, stream.to_device(value));
  return devices_.answer_of(0, stream.to_host(there));
}

std::vector<std::vector<tensor>>
reduction_on_device::on_host(std::span<const std::vector<tensor>> packs) const {
  std::lock_guard guard{mutex_};
  std::vector<std::vector<tensor>> parts(packs.begin(), packs.end());
  std::vector<tensor> sums; // live until the device has copied them
  auto is_asked = false;
  for (auto& part : parts) {
    check_row_major(part);
    auto where = where_to_add(part);
    is_asked |= where != place::host;
    if (where == place::here) {
      sums.push_back(devices_.add(0, part));
      part = {devices_.answer_of(0, devices_.stream(0).to_host(sums.back()))};
    } else if (where == place::host_after_copies) {
      std::ranges::transform(part, part.begin(),
                             [&](const tensor& value) { return fetched(value); });
    }
  }
  if (is_asked) devices_.wait_for(0);
  return parts;
}

std::vector<std::vector<tensor>>
reduction_on_device::sums_on_devices(std::span<const std::vector<tensor>> values) const {
  std::lock_guard guard{mutex_};
  std::vector<std::vector<tensor>> sums;
  auto is_asked = false;
  for (const auto& components : values) {
    check_alike(components);
    check_row_major(components);
    auto& sum = sums.emplace_back();
    if (where_to_add(components) == place::here) sum.push_back(devices_.add(0, components));
    is_asked |= !sum.empty();
  }
  if (is_asked) devices_.wait_for(0);
  return sums;
}

std::vector<tensor>
reduction_on_device::reduce_packs(reduce_op op, std::span<const std::vector<tensor>> packs) const {
  auto parts = on_host(packs);
  std::vector<tensor> results;
  for (size_t i = 0; i < packs.size(); ++i) {
    auto divisor = divisor_of(op, packs[i].size());
    auto is_done = parts[i].size() < packs[i].size() && divisor == 1;
    results.push_back(is_done ? parts[i].front() : divided_sum(parts[i], divisor));
  }
  return results;
}

} // namespace troupe
