// SPDX-License-Identifier: Apache-2.0
// Brings the values of replicas together, and chooses what combines them.
#include "strategies/reduce/reducer.hpp"

#include "actors/world/activity.hpp"
#include "actors/world/compute_device.hpp"
#include "kernels/tensor/change.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
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
task<void> divide_on_devices(const reduction_site& site, activity& host,
                             process_exchange& exchange) {
  auto& sums = exchange.results();
  for (size_t i = 0; i < sums.size(); ++i) {
    auto divisor = exchange.divisors()[i];
    if (!is_on_device(sums[i]) || divisor == 1) continue;
    auto stream = site.devices->at(sums[i].device());
    if (!stream) check_on_host(sums[i]); // no device can be asked
    auto mean = std::make_shared<tensor>();
    auto work = [mean, sum = sums[i], divisor](compute_stream& stream) {
      *mean = value_or_throw(stream.sum({&sum, 1}, divisor));
    };
    auto dividing = host.offload_to(*stream, "a mean", std::move(work));
    co_await dividing;
    sums[i] = *mean;
  }
}

// Makes all collectives that are noted, at once.
task<void> make_calls(const reduction_site& site, activity& host, process_exchange& exchange,
                      communication_options options) {
  exchange.prepare(options);
  auto work = [exchange] { return exchange.packed(); }; // outlives this frame if the run is killed
  auto packing = site.compute(host, exchange.bytes(), work);
  auto packed = co_await packing;
  std::vector<std::pair<communicator_actor, collective_call>> requests;
  for (auto& call : packed.calls)
    requests.emplace_back(site.group->communicator, std::move(call));
  auto asking = host.request_all<collective_result>(std::move(requests));
  auto answers = co_await asking;
  std::vector<tensor> results;
  for (auto& answer : answers)
    results.push_back(value_or_throw(std::move(answer)).value);
  exchange.settle(packed, results);
  auto dividing = divide_on_devices(site, host, exchange);
  co_await dividing;
}

// Runs a reduction over the replicas of all processes.
// @param plan `pending<R> plan(process_exchange*)`: notes the collectives that it needs, unless the
// exchange is null: then there is one process. It returns the function that gives the result.
// @param bytes The bytes that computing the result moves here.
template <class Plan, class Pending = std::invoke_result_t<Plan&, process_exchange*>>
task<typename Pending::result_type> carry_out(const reduction_site& site, activity& host,
                                              std::string name, communication_options options,
                                              size_t bytes, Plan plan) {
  std::optional<process_exchange> exchange;
  if (site.group != nullptr) exchange.emplace(*site.group, std::move(name), site.run_count);
  Pending finish = plan(exchange ? &*exchange : nullptr);
  if (exchange) {
    auto settling = make_calls(site, host, *exchange, options);
    co_await settling;
  }
  auto finishing = site.compute(host, bytes, std::move(finish));
  auto result = co_await finishing;
  co_return result;
}

// The results of several reductions of one exchange.
template <class T>
pending<std::vector<T>> all_of(std::vector<pending<T>> each) {
  return [each = std::move(each)] { return mapped(each, [](const auto& one) { return one(); }); };
}

// ---- on devices ----

// Makes arrays ready for a reduction by the host, or by the devices of all processes. An array on a
// device is combined there if all replicas are here. It stays there if devices reduce between
// processes; else it comes to the host. @param on_host Whether all are to come to the host.
task<void> make_ready(const reduction_site& site, activity& host, input_arrays& inputs,
                      const reduction_call& call, bool on_host) {
  if (!on_host && site.group == nullptr) {
    auto combining = combine_on_devices(host, *site.devices, call.op, inputs);
    co_await combining;
  }
  std::vector<tensor*> elsewhere;
  for (auto& group : inputs.groups)
    if (on_host || group.kind != array_kind::dense
        || !are_reduced_on_devices(group.parts, site.group, call.options))
      for (auto& part : group.parts)
        elsewhere.push_back(&part);
  auto bringing = bring_to_host(host, *site.devices, std::move(elsewhere));
  co_await bringing;
}

// ---- gradients ----

// Brings rows to the host, but for those that a device adds.
task<void> bring_rows(const reduction_site& site, activity& host,
                      std::vector<replica_gradients>& gradients) {
  std::vector<replica_rows> rows;
  for (const auto& gradient : gradients)
    if (const auto& variable = gradient.variable)
      rows.push_back({gradient.values.components, variable->type, variable->extents});
  auto combining = combine_rows_on_devices(host, *site.devices, rows);
  co_await combining;
  auto combined = rows.begin();
  for (auto& gradient : gradients)
    if (gradient.variable) gradient.values.components = std::move((combined++)->components);
  std::vector<tensor*> arrays;
  for (auto& gradient : gradients)
    for (auto& component : gradient.values.components)
      if (std::holds_alternative<indexed_slices>(component))
        std::ranges::copy(arrays_in(component), std::back_inserter(arrays));
  auto bringing = bring_to_host(host, *site.devices, std::move(arrays));
  co_await bringing;
}

// Makes gradients ready for other processes.
task<void> make_ready(const reduction_site& site, activity& host,
                      std::vector<replica_gradients>& gradients, const reduction_call& call) {
  std::vector<leaf_group> groups;
  for (const auto& gradient : gradients) {
    const auto& components = gradient.values.components;
    static_cast<void>(are_sparse(components, site.group->first_replica())); // refuses a mixture
    groups.push_back(group_of(components));
  }
  auto inputs = arrays_of(groups);
  if (!inputs.is_on_devices()) co_return;
  auto readying = make_ready(site, host, inputs, call, false);
  co_await readying;
  put_back(groups, inputs);
  for (size_t i = 0; i < gradients.size(); ++i)
    gradients[i].values.components = gradients_in(groups[i]);
}

// The arrays of a gradient, if their sum is to stay on a device; else none.
std::vector<tensor> staying_arrays(const replica_gradients& gradient, reduce_op op) {
  const auto& [components, devices] = gradient.values;
  const auto& places = gradient.places;
  auto is_wanted_there = !places.empty() && places.front().kind != device_kind::cpu;
  if (!is_wanted_there || op != reduce_op::sum || are_sparse(components)
      || std::ranges::none_of(components, lies_on_device))
    return {};
  return dense_components(components);
}

/// Gradients that were combined, each in one place or several.
using combined_gradients = std::vector<std::vector<gradient>>;

// The sums of this process, by its operations.
combined_gradients reduced_here(const cross_device_ops& operations, const reduction_call& call,
                                const std::vector<replica_gradients>& gradients) {
  combined_gradients results(gradients.size());
  std::vector<std::vector<tensor>> staying;
  std::vector<size_t> positions;
  for (size_t i = 0; i < gradients.size(); ++i)
    if (auto arrays = staying_arrays(gradients[i], call.op); !arrays.empty()) {
      staying.push_back(std::move(arrays));
      positions.push_back(i);
    }
  const auto sums = operations.sums_on_devices(staying);
  for (size_t i = 0; i < positions.size(); ++i)
    results[positions[i]].assign(sums[i].begin(), sums[i].end());
  std::vector<std::pair<device_values, destinations>> batch;
  for (size_t i = 0; i < gradients.size(); ++i)
    if (const auto& input = gradients[i]; results[i].empty())
      batch.emplace_back(input.values, input.to.value_or(destinations{input.values.devices}));
  auto reduced = operations.batch_reduce(call.op, batch, call.options);
  auto next = reduced.begin();
  for (auto& result : results)
    if (result.empty()) result.push_back(std::move(*next++));
  return results;
}

pending<combined_gradients> reduced_with_others(process_exchange& exchange,
                                                const reduction_call& call,
                                                const std::vector<replica_gradients>& inputs) {
  std::vector<pending<gradient>> each;
  for (const auto& input : inputs)
    each.push_back(reduce_components(call.op, input.values.components, &exchange, input.name));
  return [results = all_of(std::move(each))] {
    combined_gradients combined;
    for (auto& result : results())
      combined.push_back({std::move(result)});
    return combined;
  };
}

// The gradient that is taken at a place, or copied there; null: it has to come by way of the host.
// @param copies One gradient in different places.
gradient* source_for(device place, std::vector<gradient>& copies, const replica_devices& devices) {
  for (auto& copy : copies)
    if (is_taken_there(*arrays_in(copy).back(), place)) return &copy;
  const auto& first = *arrays_in(copies.front()).back();
  auto is_copied = is_on_device(first) && first.device() != place && first.is_contiguous()
                   && is_floating(first.type()) && devices.at(place);
  return is_copied ? &copies.front() : nullptr;
}

// A gradient for each place; none, if one of them has to come by way of the host.
std::vector<gradient> sources_for(const std::vector<device>& places, std::vector<gradient>& copies,
                                  const replica_devices& devices) {
  std::vector<gradient> sources;
  for (auto place : places) {
    const auto* source = source_for(place, copies, devices);
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
  if (!are_numbered(rows))
    refuse_rows(rows, fmt::format("replica {}", exchange.group().first_replica()));
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

task<reducer::combined> reducer::combine(reduction_call call,
                                         std::vector<leaf_group> groups) const {
  call.options.validate();
  combined result;
  result.inputs = arrays_of(groups);
  auto bytes = bytes_of(groups);
  if (result.inputs.is_on_devices()) {
    auto readying = make_ready(site_, *host_, result.inputs, call, call.axes.has_value());
    co_await readying;
    put_back(groups, result.inputs);
  }
  auto plan = [op = call.op, groups = std::move(groups), axes = std::move(call.axes),
               replicas = site_.replicas](process_exchange* exchange) {
    return reduce_leaves(op, groups, {axes, exchange, replicas});
  };
  auto reducing = carry_out(site_, *host_, call.name, call.options, bytes, std::move(plan));
  result.leaves = co_await reducing;
  co_return result;
}

task<std::vector<std::vector<leaf>>>
reducer::reduce(reduction_call call, std::vector<leaf_group> groups, size_t takers) const {
  auto combining = combine(std::move(call), std::move(groups));
  auto [inputs, leaves] = co_await combining;
  if (!inputs.is_on_devices()) co_return std::vector<std::vector<leaf>>{leaves};
  auto placing = placed_for(*host_, *site_.devices, inputs, arrays_of(leaves), takers);
  auto placed = co_await placing;
  std::vector<std::vector<leaf>> results(takers, leaves);
  for (size_t i = 0; i < takers; ++i)
    put_back(results[i], placed[i]);
  co_return results;
}

task<std::vector<std::vector<gradient>>>
reducer::reduce_gradients(reduction_call call, std::vector<replica_gradients> values) const {
  call.options.validate();
  size_t bytes = 0;
  for (const auto& gradient : values)
    for (const auto& component : gradient.values.components)
      bytes += bytes_of(as_leaf(component));
  if (site_.group == nullptr) {
    auto bringing = bring_rows(site_, *host_, values);
    co_await bringing;
    // No thread that runs actors may do work that waits for devices.
    if (site_.operations->waits()) bytes = std::max(bytes, reduction_site::few_bytes);
  } else {
    auto readying = make_ready(site_, *host_, values, call);
    co_await readying;
  }
  auto places = mapped(values, &replica_gradients::places);
  auto plan = [call, values = std::move(values), operations = site_.operations](
                process_exchange* exchange) -> pending<combined_gradients> {
    if (exchange != nullptr) return reduced_with_others(*exchange, call, values);
    return [operations, call, values] { return reduced_here(*operations, call, values); };
  };
  auto reducing = carry_out(site_, *host_, call.name, call.options, bytes, std::move(plan));
  auto reduced = co_await reducing;
  auto bringing = bring(std::move(reduced), std::move(places));
  auto brought = co_await bringing;
  co_return brought;
}

task<std::vector<std::vector<gradient>>>
reducer::bring(std::vector<std::vector<gradient>> copies,
               std::vector<std::vector<device>> places) const {
  std::vector<array_move> moves;
  for (size_t i = 0; i < copies.size(); ++i) {
    auto sources = sources_for(places[i], copies[i], *site_.devices);
    auto stays = !sources.empty();
    if (stays)
      copies[i] = std::move(sources);
    else
      copies[i].resize(1);
    for (size_t at = 0; at < copies[i].size(); ++at)
      for (auto* array : arrays_in(copies[i][at])) {
        auto is_values = array == arrays_in(copies[i][at]).back();
        moves.push_back({array, stays && is_values ? places[i][at] : device{}});
      }
  }
  auto moving = move_arrays(*host_, *site_.devices, std::move(moves));
  co_await moving;
  co_return copies;
}

task<std::vector<tensor>> reducer::gather(reduction_call call, std::vector<tensor> parts,
                                          int64_t axis) const {
  call.options.validate();
  input_arrays inputs{{{array_kind::row_numbers, parts, {}}}};
  auto& group = inputs.groups.front();
  size_t bytes = 0;
  for (const auto& part : parts) {
    group.devices.push_back(part.device());
    bytes += part.bytes();
  }
  if (inputs.is_on_devices()) {
    if (site_.group == nullptr) group.axis = cross_device_ops::gathered_axis(parts, axis);
    auto readying = make_ready(site_, *host_, inputs, call, false);
    co_await readying;
    axis = group.outcome ? 0 : axis; // that of placeholders
  }
  auto plan = [components = group.parts, axis](process_exchange* exchange) {
    return gather_components(components, axis, exchange);
  };
  auto gathering = carry_out(site_, *host_, call.name, call.options, bytes, std::move(plan));
  auto gathered = co_await gathering;
  std::vector<tensor> results{gathered};
  if (!inputs.is_on_devices()) co_return results;
  auto placing = placed_for(*host_, *site_.devices, inputs, arrays_of(std::vector<leaf>{gathered}),
                            parts.size());
  auto placed = co_await placing;
  results.clear();
  for (const auto& for_replica : placed)
    results.push_back(for_replica.groups.front().parts.front());
  co_return results;
}

task<std::vector<tensor>> reducer::gather_rows(std::string name, std::vector<tensor> own) const {
  if (site_.group == nullptr) co_return own;
  auto plan = [own](process_exchange* exchange) {
    std::vector<pending<tensor>> each;
    for (size_t i = 0; i < own.size(); ++i)
      each.push_back(exchange->gather({&own[i], 1}, own.size() > 1 ? std::to_string(i) : ""));
    return all_of(std::move(each));
  };
  auto gathering = carry_out(site_, *host_, std::move(name), {}, 0, std::move(plan));
  auto all = co_await gathering;
  co_return all;
}

task<leaf> reducer::broadcast(reduction_call call, leaf own) const {
  if (site_.group == nullptr) co_return own;
  auto plan = [own](process_exchange* exchange) { return broadcast_leaf(*exchange, own); };
  auto sharing = carry_out(site_, *host_, call.name, call.options, 0, std::move(plan));
  auto first = co_await sharing;
  co_return first;
}

task<tensor> reducer::share_first(std::string name, tensor own) const {
  if (site_.group == nullptr) co_return own;
  auto plan = [own](process_exchange* exchange) { return exchange->broadcast_to_all(own); };
  auto sharing = carry_out(site_, *host_, std::move(name), {}, 0, std::move(plan));
  auto first = co_await sharing;
  co_return first;
}

task<void> reducer::bring_to_host(std::vector<tensor*> arrays) const {
  return troupe::bring_to_host(*host_, *site_.devices, std::move(arrays));
}

} // namespace troupe
