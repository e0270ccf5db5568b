// SPDX-License-Identifier: Apache-2.0
// Chooses the devices that are asked to copy and to combine arrays, and asks them.
#include "strategies/reduce/input_arrays.hpp"

#include "actors/world/activity.hpp"
#include "actors/world/compute_device.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/reduce/replica_devices.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool is_device(device where) {
  return where.kind != device_kind::cpu;
}

// The requests to each device, so that each is waited for once.
template <class Item>
using by_device = std::vector<std::pair<device, std::vector<Item>>>;

template <class Item>
std::vector<Item>& items_of(by_device<Item>& requests, device where) {
  auto found = std::ranges::find(requests, where, &std::pair<device, std::vector<Item>>::first);
  if (found != requests.end()) return found->second;
  return requests.emplace_back(where, std::vector<Item>{}).second;
}

// Calls `of_array(array, kind)` for the arrays of a leaf.
template <class Leaf, class OfArray>
void for_each_array(Leaf& leaf, const OfArray& of_array) {
  if (auto* dense = std::get_if<tensor>(&leaf)) of_array(*dense, array_kind::dense);
  if (auto* rows = std::get_if<indexed_slices>(&leaf)) {
    of_array(rows->indices, array_kind::row_numbers);
    of_array(rows->values, array_kind::row_values);
  }
}

/// A copy of an array, and the tensors that are replaced by it.
struct array_copy {
  tensor from;
  device to;
  std::vector<tensor*> takers;
};

// Only the host could gather elements that lie with gaps between them, and it cannot look there.
tensor copied(compute_stream& stream, const tensor& from, device to) {
  if (from.element_count() == 0)
    return is_device(to) ? value_or_throw(stream.make(from.type(), from.extents()))
                         : tensor{from.type(), from.extents()};
  auto there = value_or_throw(stream.to_device(from));
  return is_device(to) ? there : value_or_throw(stream.to_host(there));
}

void add_copy(std::vector<array_copy>& copies, const array_move& move) {
  auto is_same = [&](const array_copy& copy) {
    return copy.to == move.to && is_same_object(copy.from, *move.array);
  };
  auto found = std::ranges::find_if(copies, is_same);
  if (found == copies.end()) found = copies.insert(copies.end(), {*move.array, move.to, {}});
  found->takers.push_back(move.array);
}

// Whether parts can be laid behind each other.
bool fit_along(const array_group& rows) {
  const auto& first = rows.parts.front();
  return std::ranges::all_of(rows.parts, [&](const tensor& other) {
    if (other.type() != first.type() || other.rank() != first.rank() || rows.axis >= other.rank())
      return false;
    auto other_dims = other.extents().dims(), dims = first.extents().dims();
    other_dims[rows.axis] = dims[rows.axis];
    return other_dims == dims;
  });
}

bool are_alike(std::span<const tensor> parts) {
  return std::ranges::all_of(parts, [&](const tensor& other) {
    return other.type() == parts.front().type() && other.extents() == parts.front().extents();
  });
}

// Whether the operation adds up or divides elements of the group, and does not only gather them.
bool is_arithmetic(const array_group& group, double divisor) {
  return group.kind == array_kind::dense || (group.kind == array_kind::row_values && divisor != 1);
}

bool is_for_a_device(const array_group& group, reduce_op op) {
  if (std::ranges::none_of(group.parts, is_on_device) || group.kind == array_kind::one_for_all)
    return false;
  const auto& first = group.parts.front();
  if (is_arithmetic(group, divisor_of(op, group.parts.size())) && !adds_on_devices(first.type()))
    return false;
  if (group.kind != array_kind::dense) return fit_along(group);
  return are_alike(group.parts) && first.element_count() > 0;
}

tensor combined(compute_stream& stream, reduce_op op, const array_group& group) {
  auto there
    = mapped(group.parts, [&](const auto& part) { return copied(stream, part, stream.where()); });
  auto divisor = divisor_of(op, there.size());
  if (group.kind == array_kind::dense)
    return there.size() == 1 ? there.front() : value_or_throw(stream.sum(there, divisor));
  auto rows = there.size() == 1 ? there.front() : value_or_throw(stream.gather(there, group.axis));
  return is_arithmetic(group, divisor) ? value_or_throw(stream.sum({&rows, 1}, divisor)) : rows;
}

// The placeholder that the host combines in place of a part that a device has combined: a number,
// or as many rows as the part has.
tensor placeholder(const array_group& group, const tensor& part) {
  auto extents = group.kind == array_kind::dense ? shape{} : shape{part.extents()[group.axis]};
  return zeros(extents, part.type());
}

// A device of the strategy that can be asked for arrays on `where`; the host, if there is none.
device device_to_ask(const replica_devices& devices, device where) {
  return devices.at(where) ? where : devices.any_gpu().value_or(device{});
}

// A replica asks its own stream, so that it does not wait behind the work of others.
processor stream_on(const activity& host, const replica_devices& devices, device where) {
  auto first = *devices.at(where);
  return host.computes_at().device == first.device ? host.computes_at() : first;
}

} // namespace

bool array_group::was_on_device() const {
  return std::ranges::any_of(devices, is_device);
}

bool input_arrays::is_on_devices() const {
  return is_even && std::ranges::any_of(groups, &array_group::was_on_device);
}

std::vector<tensor*> arrays_in(gradient& value) {
  if (auto* dense = std::get_if<tensor>(&value)) return {dense};
  auto& rows = std::get<indexed_slices>(value);
  return {&rows.indices, &rows.values};
}

std::vector<tensor*> arrays_in(std::vector<gradient>& gradients) {
  std::vector<tensor*> arrays;
  for (auto& gradient : gradients)
    std::ranges::copy(arrays_in(gradient), std::back_inserter(arrays));
  return arrays;
}

input_arrays arrays_of(const std::vector<leaf_group>& leaves) {
  input_arrays result;
  for (const auto& group : leaves) {
    auto first = result.groups.size();
    for (const auto& part : group.parts) {
      if (const auto* rows = std::get_if<indexed_slices>(&part))
        result.is_even &= are_numbered(*rows);
      auto at = first;
      for_each_array(part, [&](const tensor& array, array_kind kind) {
        if (at == result.groups.size()) result.groups.push_back({kind, {}, {}});
        auto& arrays = result.groups[at++];
        result.is_even &= arrays.kind == kind;
        arrays.parts.push_back(array);
        arrays.devices.push_back(array.device());
      });
    }
    for (auto i = first; i < result.groups.size(); ++i) {
      result.is_even &= result.groups[i].parts.size() == group.parts.size();
      if (group.owner != leaf_owner::each_replica) result.groups[i].kind = array_kind::one_for_all;
    }
  }
  return result;
}

input_arrays arrays_of(const std::vector<leaf>& leaves) {
  auto groups = mapped(leaves, [](const auto& leaf) { return leaf_group{{leaf}}; });
  return arrays_of(groups);
}

void put_back(std::vector<leaf_group>& leaves, const input_arrays& arrays) {
  size_t first = 0;
  for (auto& group : leaves) {
    size_t each = 0;
    for (size_t i = 0; i < group.parts.size(); ++i) {
      each = 0;
      for_each_array(group.parts[i], [&](tensor& array, array_kind) {
        array = arrays.groups[first + each++].parts[i];
      });
    }
    first += each;
  }
}

void put_back(std::vector<leaf>& leaves, const input_arrays& arrays) {
  size_t next = 0;
  for (auto& leaf : leaves)
    for_each_array(leaf,
                   [&](tensor& array, array_kind) { array = arrays.groups[next++].parts.front(); });
}

task<void> move_arrays(activity& host, const replica_devices& devices,
                       std::vector<array_move> moves) {
  by_device<array_copy> requests;
  for (const auto& move : moves) {
    const auto& array = *move.array;
    if (is_on_device(array) ? array.device() == move.to : !is_device(move.to)) continue;
    check_row_major(array);
    auto where = device_to_ask(devices, is_device(move.to) ? move.to : array.device());
    if (!is_device(where)) check_on_host(array); // no device can be asked
    add_copy(items_of(requests, where), move);
  }
  for (auto& [where, copies] : requests) {
    auto results = std::make_shared<std::vector<tensor>>();
    auto work = [copies = copies, results](compute_stream& stream) {
      for (const auto& copy : copies)
        results->push_back(
          copied(stream, copy.from, is_device(copy.to) ? stream.where() : copy.to));
    };
    auto stream = stream_on(host, devices, where);
    auto copying = host.offload_to(stream, "copies of arrays", std::move(work));
    co_await copying;
    for (size_t i = 0; i < copies.size(); ++i)
      for (auto* taker : copies[i].takers)
        *taker = (*results)[i];
  }
}

task<void> bring_to_host(activity& host, const replica_devices& devices,
                         std::vector<tensor*> arrays) {
  auto moves = mapped(arrays, [](auto* array) { return array_move{array, {}}; });
  return move_arrays(host, devices, std::move(moves));
}

task<void> combine_on_devices(activity& host, const replica_devices& devices, reduce_op op,
                              input_arrays& arrays) {
  by_device<array_group*> requests;
  for (auto& group : arrays.groups) {
    if (!is_for_a_device(group, op)) continue;
    check_row_major(group.parts);
    auto where = device_to_ask(devices, std::ranges::find_if(group.devices, is_device)[0]);
    if (is_device(where)) items_of(requests, where).push_back(&group);
  }
  for (auto& [where, groups] : requests) {
    auto inputs = std::make_shared<std::vector<array_group>>();
    for (const auto* group : groups)
      inputs->push_back(*group);
    auto work = [inputs, op](compute_stream& stream) {
      for (auto& group : *inputs)
        group.outcome = combined(stream, op, group);
    };
    auto stream = stream_on(host, devices, where);
    auto combining = host.offload_to(stream, "a reduction", std::move(work));
    co_await combining;
    for (size_t i = 0; i < groups.size(); ++i) {
      groups[i]->outcome = (*inputs)[i].outcome;
      for (auto& part : groups[i]->parts)
        part = placeholder(*groups[i], part);
    }
  }
}

task<std::vector<input_arrays>> placed_for(activity& host, const replica_devices& devices,
                                           const input_arrays& inputs, input_arrays result,
                                           size_t replicas) {
  for (size_t i = 0; i < result.groups.size(); ++i)
    if (const auto& outcome = inputs.groups[i].outcome) result.groups[i].parts = {*outcome};
  std::vector<input_arrays> placed(replicas, result);
  std::vector<array_move> moves;
  for (size_t replica = 0; replica < replicas; ++replica)
    for (size_t i = 0; i < result.groups.size(); ++i) {
      const auto& group = inputs.groups[i];
      if (!group.was_on_device()) continue;
      auto to = group.devices[std::min(replica, group.devices.size() - 1)];
      moves.push_back({&placed[replica].groups[i].parts.front(), to});
    }
  auto moving = move_arrays(host, devices, std::move(moves));
  co_await moving;
  co_return placed;
}

} // namespace troupe
