// SPDX-License-Identifier: Apache-2.0
// Brings values together, and chooses the backend that combines them.
#include "strategies/reduce/reducer.hpp"

#include "actors/world/activity.hpp"
#include "actors/world/compute_device.hpp"
#include "kernels/math/cast.hpp"
#include "kernels/tensor/change.hpp"
#include "kernels/tensor/gradient_sum.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/reduce/process_exchange.hpp"
#include "strategies/reduce/reduce_leaves.hpp"
#include "strategies/reduce/replica_devices.hpp"
#include "strategies/reduce/rows_on_devices.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

namespace troupe {

namespace {

size_t bytes_of(const leaf& value) {
  if (const auto* dense = std::get_if<tensor>(&value)) return dense->bytes();
  const auto* rows = std::get_if<indexed_slices>(&value);
  return rows == nullptr ? 0 : rows->values.bytes();
}

size_t bytes_of(const std::vector<leaf_group>& groups) {
  size_t bytes = 0;
  for (const auto& group : groups)
    for (const auto& part : group.parts)
      bytes += bytes_of(part);
  return bytes;
}

// ---- with other processes ----

// Divides sums that devices have made; the means stay there.
task<void> divide_on_devices(const reduction_site& at, activity& host, process_exchange& exchange) {
  auto& sums = exchange.results();
  for (size_t i = 0; i < sums.size(); ++i) {
    auto divisor = exchange.divisors()[i];
    if (!is_on_device(sums[i]) || divisor == 1) continue;
    auto where = at.devices->at(sums[i].device());
    if (!where) check_on_host(sums[i]); // no device can be asked
    auto mean = std::make_shared<tensor>();
    auto work = [mean, sum = sums[i], divisor](compute_stream& on) {
      *mean = value_or_throw(on.sum({&sum, 1}, divisor));
    };
    auto dividing = host.offload_to(*where, "a mean", std::move(work));
    co_await dividing;
    sums[i] = *mean;
  }
}

// Makes all collectives that are noted, at once.
task<void> make_calls(const reduction_site& at, activity& host, process_exchange& exchange,
                      communication_options options) {
  exchange.prepare(options);
  auto work = [exchange] { return exchange.packed(); }; // outlives this frame if the run is killed
  auto packing = at.compute(host, exchange.bytes(), work);
  auto packed = co_await packing;
  std::vector<std::pair<communicator_actor, collective_call>> requests;
  for (auto& call : packed.calls)
    requests.emplace_back(at.group->communicator, std::move(call));
  auto asking = host.request_all<collective_result>(std::move(requests));
  auto answers = co_await asking;
  std::vector<tensor> results;
  for (auto& answer : answers)
    results.push_back(value_or_throw(std::move(answer)).value);
  exchange.settle(packed, results);
  auto dividing = divide_on_devices(at, host, exchange);
  co_await dividing;
}

// Runs a reduction over the replicas of all processes.
// @param plan `pending<R> plan(process_exchange*)`: notes the collectives that it needs, unless the
// exchange is null: then there is one process. It returns the function that gives the result.
// @param bytes The bytes that computing the result moves here.
template <class Plan, class Pending = std::invoke_result_t<Plan&, process_exchange*>>
task<typename Pending::result_type> exchanged(const reduction_site& at, activity& host,
                                              std::string what, communication_options options,
                                              size_t bytes, Plan plan) {
  std::optional<process_exchange> exchange;
  if (at.group != nullptr) exchange.emplace(*at.group, std::move(what));
  Pending finish = plan(exchange ? &*exchange : nullptr);
  if (exchange) {
    auto settling = make_calls(at, host, *exchange, options);
    co_await settling;
  }
  auto finishing = at.compute(host, bytes, std::move(finish));
  auto result = co_await finishing;
  co_return result;
}

// The results of several reductions of one exchange.
template <class T>
pending<std::vector<T>> all_of(std::vector<pending<T>> each) {
  return [each = std::move(each)] {
    std::vector<T> results;
    for (const auto& one : each)
      results.push_back(one());
    return results;
  };
}

// ---- on devices ----

// Makes arrays ready for a reduction by the host, or by the devices of all processes. An array on a
// device is combined there if all replicas are here. It stays there if devices reduce between
// processes; else it comes to the host. @param on_host Whether all are to come to the host.
task<void> make_ready(const reduction_site& at, activity& host, input_arrays& brought,
                      const reduction_call& how, bool on_host) {
  if (!on_host && at.group == nullptr) {
    auto combining = combine_on_devices(host, *at.devices, how.op, brought);
    co_await combining;
  }
  std::vector<tensor*> elsewhere;
  for (auto& each : brought.groups)
    if (on_host || each.kind != array_kind::dense
        || !are_reduced_on_devices(each.parts, at.group, how.options))
      for (auto& part : each.parts)
        elsewhere.push_back(&part);
  auto bringing = bring_to_host(host, *at.devices, std::move(elsewhere));
  co_await bringing;
}

// ---- gradients ----

// Whether a component still has to get the dtype of its variable.
bool is_to_widen(const tensor& values, const replica_gradients& one) {
  return one.of && values.type() != one.of->type && widens_to(values.type(), one.of->type);
}

// Between processes, gradients are added in the dtype in which an owner adds them.
task<void> widen_components(const reduction_site& at, activity& host,
                            std::vector<replica_gradients>& all) {
  std::vector<tensor*> narrow;
  std::vector<dtype> types;
  for (auto& one : all)
    for (auto& component : one.values.components)
      if (auto* values = arrays_in(component).back(); is_to_widen(*values, one)) {
        narrow.push_back(values);
        types.push_back(one.of->type);
      }
  auto bringing = bring_to_host(host, *at.devices, narrow);
  co_await bringing;
  for (size_t i = 0; i < narrow.size(); ++i)
    *narrow[i] = cast(*narrow[i], types[i]);
}

// Brings rows to the host, but for those that a device adds.
task<void> bring_rows(const reduction_site& at, activity& host,
                      std::vector<replica_gradients>& all) {
  std::vector<brought_rows> rows;
  for (const auto& one : all)
    if (one.of) rows.push_back({one.values.components, one.of->type, one.of->extents});
  auto combining = combine_rows_on_devices(host, *at.devices, rows);
  co_await combining;
  auto combined = rows.begin();
  for (auto& one : all)
    if (one.of) one.values.components = std::move((combined++)->components);
  std::vector<tensor*> left;
  for (auto& one : all)
    for (auto& component : one.values.components)
      if (std::holds_alternative<indexed_slices>(component))
        std::ranges::copy(arrays_in(component), std::back_inserter(left));
  auto bringing = bring_to_host(host, *at.devices, std::move(left));
  co_await bringing;
}

// Makes gradients ready for other processes.
task<void> make_ready(const reduction_site& at, activity& host, std::vector<replica_gradients>& all,
                      const reduction_call& how) {
  auto widening = widen_components(at, host, all);
  co_await widening;
  std::vector<leaf_group> groups;
  for (const auto& one : all) {
    static_cast<void>(
      are_sparse(one.values.components, at.group->first_replica())); // refuses some of each kind
    groups.push_back(group_of(one.values.components));
  }
  auto brought = arrays_of(groups);
  if (!brought.is_on_devices()) co_return;
  auto readying = make_ready(at, host, brought, how, false);
  co_await readying;
  put_back(groups, brought);
  for (size_t i = 0; i < all.size(); ++i)
    all[i].values.components = gradients_in(groups[i]);
}

// The arrays of a gradient, if their sum is to stay on a device; else none.
std::vector<tensor> staying_arrays(const replica_gradients& one, reduce_op op) {
  const auto& components = one.values.components;
  auto is_wanted_there = !one.places.empty() && one.places.front().kind != device_kind::cpu;
  if (!is_wanted_there || op != reduce_op::sum || are_sparse(components)
      || std::ranges::none_of(components, lies_on_device))
    return {};
  std::vector<tensor> arrays;
  for (const auto& component : components)
    arrays.push_back(std::get<tensor>(component));
  return arrays;
}

/// A gradient that was combined, wherever it lies.
using combined_gradients = std::vector<std::vector<gradient>>;

// The sums of this process, by its operations.
combined_gradients reduced_here(const cross_device_ops& operations, const reduction_call& how,
                                const std::vector<replica_gradients>& all) {
  combined_gradients results(all.size());
  std::vector<std::vector<tensor>> staying;
  std::vector<size_t> which;
  for (size_t i = 0; i < all.size(); ++i)
    if (auto arrays = staying_arrays(all[i], how.op); !arrays.empty()) {
      staying.push_back(std::move(arrays));
      which.push_back(i);
    }
  const auto sums = operations.sums_on_devices(staying);
  for (size_t i = 0; i < which.size(); ++i)
    results[which[i]].assign(sums[i].begin(), sums[i].end());
  std::vector<std::pair<device_values, destinations>> values;
  for (size_t i = 0; i < all.size(); ++i)
    if (results[i].empty())
      values.emplace_back(all[i].values, all[i].to.value_or(destinations{all[i].values.devices}));
  auto next = operations.batch_reduce(how.op, values, how.options);
  auto reduced = next.begin();
  for (auto& result : results)
    if (result.empty()) result.push_back(std::move(*reduced++));
  return results;
}

pending<combined_gradients> reduced_with_others(process_exchange& exchange,
                                                const reduction_call& how,
                                                const std::vector<replica_gradients>& all) {
  std::vector<pending<gradient>> each;
  for (const auto& one : all)
    each.push_back(reduce_components(how.op, one.values.components, &exchange, one.name));
  return [results = all_of(std::move(each))] {
    combined_gradients alone;
    for (auto& one : results())
      alone.push_back({std::move(one)});
    return alone;
  };
}

// The gradient that is taken at a place, or copied there; null: it has to come by way of the host.
gradient* source_for(device place, std::vector<gradient>& same, const replica_devices& devices) {
  for (auto& one : same)
    if (is_taken_there(*arrays_in(one).back(), place)) return &one;
  const auto& first = *arrays_in(same.front()).back();
  auto is_copied = is_on_device(first) && first.device() != place && first.is_contiguous()
                   && is_floating(first.type()) && devices.at(place);
  return is_copied ? &same.front() : nullptr;
}

// A gradient for each place; none, if one of them has to come by way of the host.
std::vector<gradient> sources_for(const std::vector<device>& places, std::vector<gradient>& same,
                                  const replica_devices& devices) {
  std::vector<gradient> sources;
  for (auto place : places) {
    const auto* source = source_for(place, same, devices);
    if (source == nullptr) return {};
    sources.push_back(*source);
  }
  return sources;
}

pending<leaf> broadcast_leaf(process_exchange& exchange, const leaf& own) {
  if (const auto* number = std::get_if<double>(&own))
    return [shared = exchange.broadcast(filled(dtype::f64, {}, *number))]() -> leaf {
      return shared().values<double>()[0];
    };
  if (const auto* dense = std::get_if<tensor>(&own))
    return [shared = exchange.broadcast(*dense)]() -> leaf { return shared(); };
  const auto& rows = std::get<indexed_slices>(own);
  auto count = exchange.group().rank == 0 ? rows.indices.extents()[0] : 0; // the others bring none
  auto indices = rows.indices.contiguous().slice(0, count);
  auto values = rows.values.contiguous().slice(0, count);
  auto all_indices = exchange.gather({&indices, 1}); // in the same order everywhere
  auto all_values = exchange.gather({&values, 1});
  return [all_indices, all_values, extents = rows.dense_extents]() -> leaf {
    return indexed_slices{all_indices(), all_values(), extents};
  };
}

} // namespace

task<reducer::combined> reducer::combine(reduction_call how, std::vector<leaf_group> groups) const {
  how.options.validate();
  combined made;
  made.brought = arrays_of(groups);
  auto bytes = bytes_of(groups);
  if (made.brought.is_on_devices()) {
    auto readying = make_ready(site_, *host_, made.brought, how, how.axes.has_value());
    co_await readying;
    put_back(groups, made.brought);
  }
  auto plan = [op = how.op, groups = std::move(groups), axes = std::move(how.axes),
               replicas = site_.replicas](process_exchange* exchange) {
    return reduce_leaves(op, groups, {axes, exchange, replicas});
  };
  auto reducing = exchanged(site_, *host_, how.what, how.options, bytes, std::move(plan));
  made.leaves = co_await reducing;
  co_return made;
}

task<std::vector<std::vector<leaf>>>
reducer::reduce(reduction_call how, std::vector<leaf_group> groups, size_t takers) const {
  auto combining = combine(std::move(how), std::move(groups));
  auto made = co_await combining;
  if (!made.brought.is_on_devices()) co_return std::vector<std::vector<leaf>>{made.leaves};
  auto placing = placed_for(*host_, *site_.devices, made.brought, arrays_of(made.leaves), takers);
  auto there = co_await placing;
  std::vector<std::vector<leaf>> results(takers, made.leaves);
  for (size_t i = 0; i < takers; ++i)
    put_back(results[i], there[i]);
  co_return results;
}

task<std::vector<std::vector<gradient>>>
reducer::reduce_gradients(reduction_call how, std::vector<replica_gradients> values) const {
  how.options.validate();
  size_t bytes = 0;
  for (const auto& one : values)
    for (const auto& component : one.values.components)
      bytes += bytes_of(as_leaf(component));
  if (site_.group == nullptr) {
    auto bringing = bring_rows(site_, *host_, values);
    co_await bringing;
    // No thread that runs actors may do work that waits for devices.
    if (site_.operations->waits()) bytes = std::max(bytes, reduction_site::few_bytes);
  } else {
    auto readying = make_ready(site_, *host_, values, how);
    co_await readying;
  }
  std::vector<std::vector<device>> places;
  for (const auto& one : values)
    places.push_back(one.places);
  auto plan = [how, values = std::move(values), operations = site_.operations](
                process_exchange* exchange) -> pending<combined_gradients> {
    if (exchange != nullptr) return reduced_with_others(*exchange, how, values);
    return [operations, how, values] { return reduced_here(*operations, how, values); };
  };
  auto reducing = exchanged(site_, *host_, how.what, how.options, bytes, std::move(plan));
  auto reduced = co_await reducing;
  auto bringing = bring(std::move(reduced), std::move(places));
  auto brought = co_await bringing;
  co_return brought;
}

task<std::vector<std::vector<gradient>>>
reducer::bring(std::vector<std::vector<gradient>> same,
               std::vector<std::vector<device>> places) const {
  std::vector<array_move> moves;
  for (size_t i = 0; i < same.size(); ++i) {
    auto sources = sources_for(places[i], same[i], *site_.devices);
    auto stays = !sources.empty();
    if (stays)
      same[i] = std::move(sources);
    else
      same[i].resize(1);
    for (size_t at = 0; at < same[i].size(); ++at)
      for (auto* array : arrays_in(same[i][at])) {
        auto is_values = array == arrays_in(same[i][at]).back();
        moves.push_back({array, stays && is_values ? places[i][at] : device{}});
      }
  }
  auto moving = move_arrays(*host_, *site_.devices, std::move(moves));
  co_await moving;
  co_return same;
}

task<std::vector<tensor>> reducer::gather(reduction_call how, std::vector<tensor> parts,
                                          int64_t axis) const {
  how.options.validate();
  input_arrays arrays{{{array_kind::row_numbers, parts, {}}}};
  auto& brought = arrays.groups.front();
  size_t bytes = 0;
  for (const auto& part : parts) {
    brought.lay.push_back(part.device());
    bytes += part.bytes();
  }
  if (arrays.is_on_devices()) {
    if (site_.group == nullptr) brought.axis = cross_device_ops::gathered_axis(parts, axis);
    auto readying = make_ready(site_, *host_, arrays, how, false);
    co_await readying;
    axis = brought.outcome ? 0 : axis; // that of placeholders
  }
  auto plan = [components = brought.parts, axis](process_exchange* exchange) {
    return gather_components(components, axis, exchange);
  };
  auto gathering = exchanged(site_, *host_, how.what, how.options, bytes, std::move(plan));
  auto gathered = co_await gathering;
  std::vector<tensor> results{gathered};
  if (!arrays.is_on_devices()) co_return results;
  auto placing = placed_for(*host_, *site_.devices, arrays, arrays_of(std::vector<leaf>{gathered}),
                            parts.size());
  auto there = co_await placing;
  results.clear();
  for (const auto& one : there)
    results.push_back(one.groups.front().parts.front());
  co_return results;
}

task<std::vector<tensor>> reducer::gather_rows(std::string what, std::vector<tensor> own) const {
  if (site_.group == nullptr) co_return own;
  auto plan = [own](process_exchange* exchange) {
    std::vector<pending<tensor>> each;
    for (size_t i = 0; i < own.size(); ++i)
      each.push_back(exchange->gather({&own[i], 1}, own.size() > 1 ? std::to_string(i) : ""));
    return all_of(std::move(each));
  };
  auto gathering = exchanged(site_, *host_, std::move(what), {}, 0, std::move(plan));
  auto all = co_await gathering;
  co_return all;
}

task<leaf> reducer::broadcast(reduction_call how, leaf own) const {
  if (site_.group == nullptr) co_return own;
  auto plan = [own](process_exchange* exchange) { return broadcast_leaf(*exchange, own); };
  auto sharing = exchanged(site_, *host_, how.what, how.options, 0, std::move(plan));
  auto first = co_await sharing;
  co_return first;
}

task<tensor> reducer::share_first(std::string what, tensor own) const {
  if (site_.group == nullptr) co_return own;
  auto plan = [own](process_exchange* exchange) { return exchange->broadcast_to_all(own); };
  auto sharing = exchanged(site_, *host_, std::move(what), {}, 0, std::move(plan));
  auto first = co_await sharing;
  co_return first;
}

task<void> reducer::bring_to_host(std::vector<tensor*> arrays) const {
  return troupe::bring_to_host(*host_, *site_.devices, std::move(arrays));
}

} // namespace troupe
