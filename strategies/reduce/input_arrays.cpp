// SPDX-License-Identifier: Apache-2.0
// Requests to devices, and the choice of the device.
#include "strategies/reduce/input_arrays.hpp"

#include "actors/world/activity.hpp"
#include "actors/world/compute_device.hpp"
#include "messages/throw_failure.hpp"
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
std::vector<Item>& items_of(by_device<Item>& all, device where) {
  auto found = std::ranges::find(all, where, [](const auto& one) { return one.first; });
  if (found != all.end()) return found->second;
  return all.emplace_back(where, std::vector<Item>{}).second;
}

// Calls `of_array(array, kind)` for the arrays of a leaf.
template <class Leaf, class OfArray>
void for_each_array(Leaf& of, const OfArray& of_array) {
  if (auto* dense = std::get_if<tensor>(&of)) of_array(*dense, array_kind::dense);
  if (auto* rows = std::get_if<indexed_slices>(&of)) {
    of_array(rows->indices, array_kind::row_numbers);
    of_array(rows->values, array_kind::row_values);
  }
}

/// A copy that is asked for, and its takers.
struct wanted_copy {
  tensor from;
  device to;
  std::vector<tensor*> takers;
};

// Only the host could gather elements that lie with gaps between them, and it cannot look there.
tensor copied(compute_stream& on, const tensor& from, device to) {
  if (from.element_count() == 0)
    return is_device(to) ? value_or_throw(on.make(from.type(), from.extents()))
                         : tensor{from.type(), from.extents()};
  auto there = value_or_throw(on.to_device(from));
  return is_device(to) ? there : value_or_throw(on.to_host(there));
}

void add_copy(std::vector<wanted_copy>& copies, const array_move& move) {
  auto is_it = [&](const wanted_copy& one) {
    return one.to == move.to && is_same_object(one.from, *move.array);
  };
  auto found = std::ranges::find_if(copies, is_it);
  if (found == copies.end()) found = copies.insert(copies.end(), {*move.array, move.to, {}});
  found->takers.push_back(move.array);
}

// Whether parts can be laid behind each other.
bool fit_along(const array_group& rows) {
  const auto& first = rows.parts.front();
  return std::ranges::all_of(rows.parts, [&](const tensor& other) {
    if (other.type() != first.type() || other.rank() != first.rank() || rows.axis >= other.rank())
      return false;
    auto its = other.extents().dims(), dims = first.extents().dims();
    its[rows.axis] = dims[rows.axis];
    return its == dims;
  });
}

bool are_alike(std::span<const tensor> parts) {
  return std::ranges::all_of(parts, [&](const tensor& other) {
    return other.type() == parts.front().type() && other.extents() == parts.front().extents();
  });
}

bool is_for_a_device(const array_group& group) {
  if (std::ranges::none_of(group.parts, is_on_device) || group.kind == array_kind::one_for_all)
    return false;
  if (group.kind != array_kind::dense) return fit_along(group);
  const auto& first = group.parts.front();
  return are_alike(group.parts) && adds_on_devices(first.type()) && first.element_count() > 0;
}

tensor combined(compute_stream& on, reduce_op op, const array_group& group) {
  std::vector<tensor> there;
  for (const auto& part : group.parts)
    there.push_back(copied(on, part, on.where()));
  auto divisor = op == reduce_op::mean ? static_cast<double>(there.size()) : 1;
  if (group.kind == array_kind::dense)
    return there.size() == 1 ? there.front() : value_or_throw(on.sum(there, divisor));
  auto rows = there.size() == 1 ? there.front() : value_or_throw(on.gather(there, group.axis));
  auto is_divided
    = group.kind == array_kind::row_values && divisor != 1 && is_floating(rows.type());
  return is_divided ? value_or_throw(on.sum({&rows, 1}, divisor)) : rows;
}

// The placeholder that the host combines in place of arrays that a device has combined.
tensor placeholder(const array_group& group) {
  auto extents = group.kind == array_kind::dense ? shape{} : shape{0};
  return zeros(extents, group.parts.front().type());
}

// A device of the strategy that can be asked for arrays on `where`.
device asked_for(const replica_devices& devices, device where) {
  return devices.at(where) ? where : devices.any_gpu().value_or(device{});
}

// A replica asks its own stream, so that it does not wait behind the work of others.
processor stream_on(const activity& host, const replica_devices& devices, device where) {
  auto first = *devices.at(where);
  return host.computes_at().device == first.device ? host.computes_at() : first;
}

} // namespace

bool array_group::was_on_device() const {
  return std::ranges::any_of(lay, is_device);
}

bool input_arrays::is_on_devices() const {
  return is_even && std::ranges::any_of(groups, &array_group::was_on_device);
}

std::vector<tensor*> arrays_in(gradient& of) {
  if (auto* dense = std::get_if<tensor>(&of)) return {dense};
  auto& rows = std::get<indexed_slices>(of);
  return {&rows.indices, &rows.values};
}

std::vector<tensor*> arrays_in(std::vector<gradient>& all) {
  std::vector<tensor*> arrays;
  for (auto& one : all)
    std::ranges::copy(arrays_in(one), std::back_inserter(arrays));
  return arrays;
}

input_arrays arrays_of(const std::vector<leaf_group>& leaves) {
  input_arrays result;
  for (const auto& group : leaves) {
    auto first = result.groups.size();
    for (const auto& part : group.parts) {
      auto at = first;
      for_each_array(part, [&](const tensor& array, array_kind kind) {
        if (at == result.groups.size()) result.groups.push_back({kind, {}, {}});
        auto& taken = result.groups[at++];
        result.is_even &= taken.kind == kind;
        taken.parts.push_back(array);
        taken.lay.push_back(array.device());
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
  std::vector<leaf_group> groups;
  for (const auto& one : leaves)
    groups.push_back({{one}});
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
  for (auto& one : leaves)
    for_each_array(one,
                   [&](tensor& array, array_kind) { array = arrays.groups[next++].parts.front(); });
}

task<void> move_arrays(activity& host, const replica_devices& devices,
                       std::vector<array_move> moves) {
  by_device<wanted_copy> asked;
  for (const auto& move : moves) {
    const auto& array = *move.array;
    if (is_on_device(array) ? array.device() == move.to : !is_device(move.to)) continue;
    check_row_major(array);
    auto where = asked_for(devices, is_device(move.to) ? move.to : array.device());
    if (!is_device(where)) check_on_host(array); // no device can be asked
    add_copy(items_of(asked, where), move);
  }
  for (auto& [where, copies] : asked) {
    auto results = std::make_shared<std::vector<tensor>>();
    auto work = [copies = copies, results](compute_stream& on) {
      for (const auto& one : copies)
        results->push_back(copied(on, one.from, is_device(one.to) ? on.where() : one.to));
    };
    auto at = stream_on(host, devices, where);
    auto copying = host.offload_to(at, "copies of arrays", std::move(work));
    co_await copying;
    for (size_t i = 0; i < copies.size(); ++i)
      for (auto* taker : copies[i].takers)
        *taker = (*results)[i];
  }
}

task<void> bring_to_host(activity& host, const replica_devices& devices,
                         std::vector<tensor*> arrays) {
  std::vector<array_move> moves;
  for (auto* array : arrays)
    moves.push_back({array, {}});
  return move_arrays(host, devices, std::move(moves));
}

task<void> combine_on_devices(activity& host, const replica_devices& devices, reduce_op op,
                              input_arrays& arrays) {
  by_device<array_group*> asked;
  for (auto& group : arrays.groups) {
    if (!is_for_a_device(group)) continue;
    check_row_major(group.parts);
    auto where = asked_for(devices, std::ranges::find_if(group.lay, is_device)[0]);
    if (is_device(where)) items_of(asked, where).push_back(&group);
  }
  for (auto& [where, groups] : asked) {
    auto given = std::make_shared<std::vector<array_group>>();
    for (const auto* group : groups)
      given->push_back(*group);
    auto work = [given, op](compute_stream& on) {
      for (auto& group : *given)
        group.outcome = combined(on, op, group);
    };
    auto at = stream_on(host, devices, where);
    auto combining = host.offload_to(at, "a reduction", std::move(work));
    co_await combining;
    for (size_t i = 0; i < groups.size(); ++i) {
      groups[i]->outcome = (*given)[i].outcome;
      std::ranges::fill(groups[i]->parts, placeholder(*groups[i]));
    }
  }
}

task<std::vector<input_arrays>> placed_for(activity& host, const replica_devices& devices,
                                           const input_arrays& brought, input_arrays result,
                                           size_t replicas) {
  for (size_t i = 0; i < result.groups.size(); ++i)
    if (const auto& outcome = brought.groups[i].outcome) result.groups[i].parts = {*outcome};
  std::vector<input_arrays> placed(replicas, result);
  std::vector<array_move> moves;
  for (size_t replica = 0; replica < replicas; ++replica)
    for (size_t i = 0; i < result.groups.size(); ++i) {
      const auto& group = brought.groups[i];
      if (!group.was_on_device()) continue;
      auto to = group.lay[std::min(replica, group.lay.size() - 1)];
      moves.push_back({&placed[replica].groups[i].parts.front(), to});
    }
  auto moving = move_arrays(host, devices, std::move(moves));
  co_await moving;
  co_return placed;
}

} // namespace troupe
