// SPDX-License-Identifier: Apache-2.0
// Devices that are asked together, and waited for.
#include "strategies/nccl_all_reduce.hpp"

#include "actors/failure.hpp"
#include "actors/recording/seconds.hpp"
#include "strategies/refuse.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe {

namespace {

constexpr auto glance = std::chrono::milliseconds{10}; // between looks at who comes together

using clock = std::chrono::steady_clock;

} // namespace

nccl_all_reduce::nccl_all_reduce(std::vector<std::shared_ptr<compute_device>> devices,
                                 const std::shared_ptr<collective_library>& library, int num_packs,
                                 job_time deadline)
  : packed_all_reduce(num_packs), devices_(std::move(devices), deadline), library_(library) {
  if (devices_.count() == 0)
    refuse(errc::invalid_argument, "nccl_all_reduce needs at least one device");
  auto id = value_or_throw(library->make_id());
  auto size = static_cast<uint32_t>(devices_.count());
  for (uint32_t rank = 0; rank < size; ++rank)
    participants_.push_back(value_or_throw(library->join(id, rank, size, devices_[rank])));
  auto until = clock::now() + deadline;
  auto is_ready = [](const auto& one) { return value_or_throw(one->is_ready()); };
  while (!std::ranges::all_of(participants_, is_ready)) {
    if (clock::now() >= until)
      refuse(errc::deadline_exceeded, "{} devices have not come together in {:.1f} s", size,
             seconds(deadline));
    std::this_thread::sleep_for(glance);
  }
}

void nccl_all_reduce::give_up() const {
  for (const auto& one : participants_)
    one->abort();
}

// All devices are asked before the first one is waited for: none goes on without the others.
tensor nccl_all_reduce::all_reduced(std::span<const tensor> components) const {
  std::vector<tensor> sums;
  for (size_t i = 0; i < devices_.count(); ++i)
    sums.push_back(devices_.add_own(i, components));
  for (size_t i = 0; i < devices_.count(); ++i) {
    const device_collective asked[] = {{collective_kind::all_reduce, sums[i], sums[i]}};
    value_or_throw(participants_[i]->ask(asked, devices_.stream(i)));
  }
  for (const auto& one : participants_)
    value_or_throw(settle(*one));
  auto result = value_or_throw(devices_.stream(0).to_host(sums.front()));
  for (size_t i = 0; i < devices_.count(); ++i)
    devices_.wait_for(i);
  return result;
}

tensor nccl_all_reduce::reduce_pack(reduce_op op, std::span<const tensor> components,
                                    size_t /*number*/) const {
  if (!devices_.take(components, name())) return reduce_arrays(op, components);
  std::lock_guard guard{mutex_};
  try {
    auto sum = all_reduced(components);
    if (op == reduce_op::sum) return sum;
    return divided_sum({&sum, 1}, static_cast<double>(components.size()));
  } catch (...) {
    give_up();
    throw;
  }
}

} // namespace troupe
