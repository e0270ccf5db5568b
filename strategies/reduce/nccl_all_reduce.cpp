// SPDX-License-Identifier: Apache-2.0
// Asks all devices together for a reduction, and waits for them.
#include "strategies/reduce/nccl_all_reduce.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/failure.hpp"
#include "messages/errors/throw_failure.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe {

namespace {

using clock = std::chrono::steady_clock;

} // namespace

nccl_all_reduce::nccl_all_reduce(std::vector<std::shared_ptr<compute_device>> devices,
                                 const std::shared_ptr<collective_library>& library, int num_packs,
                                 job_time deadline)
  : packed_all_reduce(num_packs), devices_(std::move(devices), deadline), library_(library) {
  if (devices_.count() == 0)
    throw_failure(errc::invalid_argument, "nccl_all_reduce needs at least one device");
  auto id = value_or_throw(library->make_id());
  auto size = static_cast<uint32_t>(devices_.count());
  for (uint32_t rank = 0; rank < size; ++rank)
    participants_.push_back(value_or_throw(library->join(id, rank, size, devices_[rank])));
  auto until = clock::now() + deadline;
  auto is_ready = [](const auto& participant) { return value_or_throw(participant->is_ready()); };
  while (!std::ranges::all_of(participants_, is_ready)) {
    if (clock::now() >= until)
      throw_failure(errc::deadline_exceeded, "{} devices have not come together in {:.1f} s", size,
                    seconds(deadline));
    std::this_thread::sleep_for(poll_interval);
  }
}

void nccl_all_reduce::add_pack(device_packs& packs, std::span<const tensor> components) const {
  for (size_t i = 0; i < devices_.count(); ++i) {
    auto sum = devices_.add_own(i, components);
    // Values that were on the device already belong to the caller, and stay as they are.
    auto is_ours = std::ranges::none_of(
      components, [&](const tensor& component) { return component.data() == sum.data(); });
    auto output
      = is_ours ? sum : devices_.answer_of(i, devices_.stream(i).make(sum.type(), sum.extents()));
    packs.parts[i].push_back({collective_kind::all_reduce, sum, output});
  }
}

nccl_all_reduce::device_packs
nccl_all_reduce::add_own(std::span<const std::vector<tensor>> packs) const {
  device_packs added;
  added.parts.resize(devices_.count());
  for (size_t i = 0; i < packs.size(); ++i)
    if (devices_.adds(packs[i], name())) {
      add_pack(added, packs[i]);
      added.positions.push_back(i);
    }
  return added;
}

// All devices are asked before the first one is waited for: none goes on without the others.
void nccl_all_reduce::ask_devices(const device_packs& packs,
                                  std::span<const tensor> on_host) const {
  for (size_t i = 0; i < devices_.count(); ++i)
    value_or_throw(participants_[i]->ask(packs.parts[i], devices_.stream(i)));
  for (const auto& participant : participants_)
    value_or_throw(settle(*participant, devices_.deadline()));
  for (size_t pack = 0; pack < on_host.size(); ++pack)
    value_or_throw(
      devices_.stream(0).copy_to_host(packs.parts.front()[pack].output, on_host[pack]));
  for (size_t i = 0; i < devices_.count(); ++i)
    devices_.wait_for(i);
}

// Allocates all memory before it asks the first device: a failure until then concerns no other.
// @param on_host Where the first device copies the sums, by pack; empty: they stay.
void nccl_all_reduce::all_reduce(const device_packs& packs, std::span<const tensor> on_host) const {
  if (packs.positions.empty()) return;
  try {
    ask_devices(packs, on_host);
  } catch (...) {
    for (const auto& participant : participants_)
      participant->abort();
    throw;
  }
}

std::vector<std::vector<tensor>>
nccl_all_reduce::sums_on_devices(std::span<const std::vector<tensor>> values) const {
  for (const auto& components : values)
    check_alike(components);
  std::lock_guard guard{mutex_};
  auto added = add_own(values);
  all_reduce(added);
  std::vector<std::vector<tensor>> sums(values.size());
  for (size_t i = 0; i < added.positions.size(); ++i)
    for (const auto& of_device : added.parts)
      sums[added.positions[i]].push_back(of_device[i].output);
  return sums;
}

std::vector<tensor>
nccl_all_reduce::reduce_packs(reduce_op op, std::span<const std::vector<tensor>> packs) const {
  std::lock_guard guard{mutex_};
  auto added = add_own(packs);
  std::vector<tensor> sums;
  for (const auto& first : added.parts.front())
    sums.push_back(devices_.answer_of(
      0, devices_.stream(0).make_on_host(first.output.type(), first.output.extents())));
  all_reduce(added, sums);
  std::vector<tensor> results;
  for (size_t i = 0, next = 0; i < packs.size(); ++i) {
    auto is_sum = next < added.positions.size() && added.positions[next] == i;
    auto divisor = divisor_of(op, packs[i].size());
    if (!is_sum)
      results.push_back(reduce_arrays(op, packs[i]));
    else if (divisor == 1)
      results.push_back(sums[next++]);
    else
      results.push_back(divided_sum({&sums[next++], 1}, divisor));
  }
  return results;
}

} // namespace troupe
