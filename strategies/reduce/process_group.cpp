// SPDX-License-Identifier: Apache-2.0
// Gives collectives their options, and joins them in packs.
#include "strategies/reduce/process_group.hpp"

#include "actors/gpu/device_communicator.hpp"
#include "kernels/tensor/crc32c.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/reduce/packs.hpp"

#include <algorithm>

namespace troupe {

namespace {

// The common properties of arrays that can be added as one.
struct pack_kind {
  dtype type;
  size_t contributions;

  bool operator==(const pack_kind&) const = default;
};

pack_kind kind_of(const collective_call& call) {
  return {call.contributions.front().type(), call.contributions.size()};
}

// The host lays arrays behind each other, so an array on a device shares no pack.
bool is_packed(const collective_call& sum, int64_t bytes_per_pack) {
  if (std::ranges::any_of(sum.contributions, is_on_device)) return false;
  return bytes_per_pack > 0 || sum.contributions.front().bytes() < lone_bytes;
}

// One name for all, and different if any of them is: "w0 and 3 more (1f00aa31)".
std::string joint_name(const std::vector<collective_call>& calls,
                       const std::vector<size_t>& members) {
  std::string all;
  for (auto member : members)
    all += fmt::format("{} {};", calls[member].name,
                       to_string(calls[member].contributions.front().extents()));
  return fmt::format("{} and {} more ({:08x})", calls[members.front()].name, members.size() - 1,
                     cpu::crc32c(std::as_bytes(std::span{all})));
}

collective_call packed(const std::vector<collective_call>& calls,
                       const std::vector<size_t>& members) {
  auto call = calls[members.front()];
  if (members.size() == 1) return call;
  call.name = joint_name(calls, members);
  for (size_t i = 0; i < call.contributions.size(); ++i) {
    auto parts = mapped(members, [&](auto member) { return calls[member].contributions[i]; });
    call.contributions[i] = laid_flat(parts);
  }
  call.in_place = true; // only the call holds the pack
  return call;
}

} // namespace

collective_algorithm algorithm_of(communication_implementation implementation, bool has_devices) {
  if (implementation == communication_implementation::nccl && !has_devices)
    throw_failure(
      errc::unimplemented,
      "the communication implementation NCCL needs GPUs, and there is none here; choose AUTO "
      "or RING");
  switch (implementation) {
  case communication_implementation::ring:
    return collective_algorithm::ring;
  case communication_implementation::halving_doubling:
    return collective_algorithm::halving_doubling;
  case communication_implementation::tree:
    return collective_algorithm::tree;
  case communication_implementation::automatic:
  case communication_implementation::nccl:
    break;
  }
  return collective_algorithm::automatic;
}

bool goes_to_devices(communication_implementation implementation, const process_group& group) {
  if (implementation == communication_implementation::nccl) return true;
  return implementation == communication_implementation::automatic && group.has_devices
         && !group.fixed_order;
}

bool are_reduced_on_devices(std::span<const tensor> contributions, const process_group* group,
                            const communication_options& options) {
  if (group == nullptr || !group->has_devices) return false;
  auto type = contributions.front().type();
  if (type != dtype::f32 && type != dtype::f64) return false;
  auto implementation = group->options.merge(options).implementation;
  collective_call call{.kind = collective_kind::all_reduce,
                       .contributions = {contributions.begin(), contributions.end()},
                       .on_devices = goes_to_devices(implementation, *group)};
  return is_for_devices(call, group->size);
}

job_time timeout_of(double seconds) {
  constexpr double century = 3600.0 * 24 * 365 * 100;
  return std::chrono::ceil<job_time>(std::chrono::duration<double>(std::min(seconds, century)));
}

void prepare(std::span<collective_call> calls, const process_group& group,
             const communication_options& options) {
  options.validate();
  auto merged = group.options.merge(options);
  auto algorithm = algorithm_of(merged.implementation, group.has_devices);
  auto seconds = merged.timeout_seconds.value_or(0);
  auto timeout = seconds > 0 ? timeout_of(seconds) : group.timeout;
  for (auto& call : calls) {
    // A ring adds in an order of its own, so it is taken only where the order is free.
    if (call.kind == collective_kind::all_reduce) call.algorithm = algorithm;
    call.fixed_order = group.fixed_order && algorithm == collective_algorithm::automatic;
    call.timeout = timeout;
    // As in TensorFlow, everything else goes by messages.
    call.on_devices
      = call.kind == collective_kind::all_reduce && goes_to_devices(merged.implementation, group);
  }
}

packed_calls pack(const std::vector<collective_call>& calls, int64_t bytes_per_pack) {
  packed_calls result;
  for (size_t i = 0; i < calls.size(); ++i)
    if (calls[i].kind != collective_kind::all_reduce) result.members.push_back({i});
  std::vector<std::pair<pack_kind, std::vector<size_t>>> alike; // from the last to the first
  for (auto i = calls.size(); i-- > 0;) {
    if (calls[i].kind != collective_kind::all_reduce) continue;
    if (!is_packed(calls[i], bytes_per_pack)) {
      result.members.push_back({i});
      continue;
    }
    auto found = std::ranges::find(alike, kind_of(calls[i]), &decltype(alike)::value_type::first);
    if (found == alike.end()) found = alike.insert(alike.end(), {kind_of(calls[i]), {}});
    found->second.push_back(i);
  }
  for (const auto& [kind, members] : alike) {
    auto bytes
      = mapped(members, [&](auto member) { return calls[member].contributions.front().bytes(); });
    auto begin = members.begin();
    for (auto count : pack_by_bytes(bytes, bytes_per_pack)) {
      auto end = begin + static_cast<ptrdiff_t>(count);
      result.members.emplace_back(begin, end);
      begin = end;
    }
  }
  result.calls = mapped(result.members, [&](const auto& one) { return packed(calls, one); });
  auto sums = std::ranges::find_if(result.calls, &collective_call::on_devices); // and all behind it
  if (sums != result.calls.end())
    sums->followers = static_cast<uint32_t>(result.calls.end() - sums) - 1;
  return result;
}

std::vector<tensor> unpack(const packed_calls& packed, const std::vector<collective_call>& calls,
                           const std::vector<tensor>& results) {
  std::vector<tensor> unpacked(calls.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const auto& members = packed.members[i];
    if (members.size() == 1) {
      unpacked[members.front()] = results[i];
      continue;
    }
    auto extents
      = mapped(members, [&](auto member) { return calls[member].contributions.front().extents(); });
    auto parts = cut(results[i], extents);
    for (size_t part = 0; part < parts.size(); ++part)
      unpacked[members[part]] = parts[part];
  }
  return unpacked;
}

} // namespace troupe
