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

// All memory is there before the first device is asked: what fails until then fails alone.
std::vector<device_collective> nccl_all_reduce::parts_of(std::span<const tensor> components) const {
  std::vector<device_collective> parts;
  for (size_t i = 0; i < devices_.count(); ++i) {
    auto sum = devices_.add_own(i, components);
    // What was there already is the caller's: it stays as it is.
    auto is_ours = std::ranges::none_of(
      components, [&](const tensor& one) { return one.data() == sum.data(); });
    auto output
      = is_ours ? sum : devices_.answer_of(i, devices_.stream(i).make(sum.type(), sum.extents()));
    parts.push_back({collective_kind::all_reduce, sum, output});
  }
  return parts;
}

// All devices are asked before the first one is waited for: none goes on without the others.
void nccl_all_reduce::reduce_parts(std::span<const device_collective> parts,
                                   const tensor& result) const {
  for (size_t i = 0; i < devices_.count(); ++i)
    value_or_throw(participants_[i]->ask(parts.subspan(i, 1), devices_.stream(i)));
  for (const auto& one : participants_)
    value_or_throw(settle(*one, devices_.deadline()));
  value_or_throw(devices_.stream(0).copy_to_host(parts.front().output, result));
  for (size_t i = 0; i < devices_.count(); ++i)
    devices_.wait_for(i);
}

tensor nccl_all_reduce::reduce_pack(reduce_op op, std::span<const tensor> components,
                                    size_t /*number*/) const {
  if (!devices_.take(components, name())) return reduce_arrays(op, components);
  std::lock_guard guard{mutex_};
  auto parts = parts_of(components);
  const auto& first = parts.front().output;
  auto sum = devices_.answer_of(0, devices_.stream(0).make_on_host(first.type(), first.extents()));
  try {
    reduce_parts(parts, sum);
  } catch (...) {
    give_up();
    throw;
  }
  if (op == reduce_op::sum) return sum;
  return divided_sum({&sum, 1}, static_cast<double>(components.size()));
}

} // namespace troupe
