// SPDX-License-Identifier: Apache-2.0
// Devices that are asked together, and waited for.
#include "strategies/reduce/nccl_all_reduce.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/failure.hpp"
#include "messages/refuse.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace troupe {

namespace {

constexpr auto glance = std::chrono::milliseconds{10}; // between looks whether all are ready

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

void nccl_all_reduce::add_pack(asked_packs& to, std::span<const tensor> components) const {
  for (size_t i = 0; i < devices_.count(); ++i) {
    auto sum = devices_.add_own(i, components);
    // What was there already is the caller's: it stays as it is.
    auto is_ours = std::ranges::none_of(
      components, [&](const tensor& one) { return one.data() == sum.data(); });
    auto output
      = is_ours ? sum : devices_.answer_of(i, devices_.stream(i).make(sum.type(), sum.extents()));
    to.parts[i].push_back({collective_kind::all_reduce, sum, output});
  }
  const auto& first = to.parts.front().back().output;
  to.sums.push_back(
    devices_.answer_of(0, devices_.stream(0).make_on_host(first.type(), first.extents())));
}

// All devices are asked before the first one is waited for: none goes on without the others.
void nccl_all_reduce::ask_devices(const asked_packs& packs) const {
  for (size_t i = 0; i < devices_.count(); ++i)
    value_or_throw(participants_[i]->ask(packs.parts[i], devices_.stream(i)));
  for (const auto& one : participants_)
    value_or_throw(settle(*one, devices_.deadline()));
  for (size_t pack = 0; pack < packs.sums.size(); ++pack)
    value_or_throw(
      devices_.stream(0).copy_to_host(packs.parts.front()[pack].output, packs.sums[pack]));
  for (size_t i = 0; i < devices_.count(); ++i)
    devices_.wait_for(i);
}

// All memory is there before the first device is asked: what fails until then fails alone.
std::vector<tensor>
nccl_all_reduce::reduce_packs(reduce_op op, std::span<const std::vector<tensor>> packs) const {
  std::vector<tensor> results(packs.size());
  std::vector<size_t> taken;
  for (size_t i = 0; i < packs.size(); ++i)
    if (devices_.take(packs[i], name()))
      taken.push_back(i);
    else
      results[i] = reduce_arrays(op, packs[i]);
  if (taken.empty()) return results;
  std::lock_guard guard{mutex_};
  asked_packs asked;
  asked.parts.resize(devices_.count());
  for (auto i : taken)
    add_pack(asked, packs[i]);
  try {
    ask_devices(asked);
  } catch (...) {
    give_up();
    throw;
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    auto& result = results[taken[i]] = asked.sums[i];
    if (op == reduce_op::mean)
      result = divided_sum({&asked.sums[i], 1}, static_cast<double>(packs[taken[i]].size()));
  }
  return results;
}

} // namespace troupe
