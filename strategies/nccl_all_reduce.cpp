// SPDX-License-Identifier: Apache-2.0
// Devices that are asked together, and waited for.
#include "strategies/nccl_all_reduce.hpp"

#include "actors/failure.hpp"
#include "actors/recording/seconds.hpp"
#include "strategies/refuse.hpp"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

namespace troupe {

namespace {

constexpr auto glance
  = std::chrono::milliseconds{10}; // between looks at a device that is waited for

using clock = std::chrono::steady_clock;

} // namespace

nccl_all_reduce::nccl_all_reduce(std::vector<std::shared_ptr<compute_device>> devices,
                                 const std::shared_ptr<collective_library>& library, int num_packs,
                                 job_time deadline)
  : packed_all_reduce(num_packs), devices_(std::move(devices)), library_(library),
    deadline_(deadline) {
  if (devices_.empty()) refuse(errc::invalid_argument, "nccl_all_reduce needs at least one device");
  auto id = value_or_throw(library->make_id());
  auto size = static_cast<uint32_t>(devices_.size());
  for (uint32_t rank = 0; rank < size; ++rank)
    participants_.push_back(value_or_throw(library->join(id, rank, size, *devices_[rank])));
  auto until = clock::now() + deadline;
  auto is_ready = [](const auto& one) { return value_or_throw(one->is_ready()); };
  while (!std::ranges::all_of(participants_, is_ready)) {
    if (clock::now() >= until)
      refuse(errc::deadline_exceeded, "{} devices have not come together in {:.1f} s", size,
             seconds(deadline));
    std::this_thread::sleep_for(glance);
  }
}

tensor nccl_all_reduce::sum_on(size_t device, std::span<const tensor> components) const {
  auto& stream = devices_[device]->stream(0);
  std::vector<tensor> there;
  for (size_t i = device; i < components.size(); i += devices_.size())
    there.push_back(value_or_throw(stream.to_device(components[i])));
  return there.size() == 1 ? there.front() : value_or_throw(stream.sum(there));
}

void nccl_all_reduce::give_up() const {
  for (const auto& one : participants_)
    one->abort();
}

void nccl_all_reduce::wait_for(compute_device& device) const {
  auto done = std::make_shared<std::promise<void>>();
  auto is_done = done->get_future();
  value_or_throw(device.notify(0, [done] { done->set_value(); }));
  for (auto until = clock::now() + deadline_; clock::now() < until;) {
    if (is_done.wait_for(glance) == std::future_status::ready) return;
    if (auto lost = device.loss())
      refuse(errc::unavailable, "{} is lost: {}", device.name(), lost->message);
  }
  refuse(errc::deadline_exceeded, "{} has not done a reduction in {:.1f} s", device.name(),
         seconds(deadline_));
}

// All devices are asked before the first one is waited for: none goes on without the others.
tensor nccl_all_reduce::all_reduced(std::span<const tensor> components) const {
  std::vector<tensor> sums;
  for (size_t i = 0; i < devices_.size(); ++i)
    sums.push_back(sum_on(i, components));
  for (size_t i = 0; i < devices_.size(); ++i) {
    const device_collective asked[] = {{collective_kind::all_reduce, sums[i], sums[i]}};
    value_or_throw(participants_[i]->ask(asked, devices_[i]->stream(0)));
  }
  for (const auto& one : participants_)
    value_or_throw(settle(*one));
  auto result = value_or_throw(devices_.front()->stream(0).to_host(sums.front()));
  for (const auto& device : devices_)
    wait_for(*device);
  return result;
}

tensor nccl_all_reduce::reduce_pack(reduce_op op, std::span<const tensor> components,
                                    size_t /*number*/) const {
  const auto& first = components.front();
  auto is_for_devices = first.type() == dtype::f32 || first.type() == dtype::f64;
  if (!is_for_devices || first.element_count() == 0) return reduce_arrays(op, components);
  if (components.size() < devices_.size())
    refuse(errc::invalid_argument,
           "nccl_all_reduce was made for {} devices, and {} values are to be reduced; make it for "
           "the devices of the strategy",
           devices_.size(), components.size());
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
