// SPDX-License-Identifier: Apache-2.0
// What merge functions and update functions ask for.
#include "strategies/contexts/cross_replica_context.hpp"

#include "actors/gpu/device_communicator.hpp"
#include "messages/failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/gradient_values.hpp"
#include "strategies/contexts/replica_group.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/reduce/on_host.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

size_t bytes_of(const std::vector<leaf_group>& leaves) {
  size_t bytes = 0;
  for (const auto& group : leaves)
    for (const auto& part : group.parts)
      if (const auto* dense = std::get_if<tensor>(&part))
        bytes += dense->bytes();
      else if (const auto* rows = std::get_if<indexed_slices>(&part))
        bytes += rows->values.bytes();
  return bytes;
}

// Where each replica's value lies.
device_values on_devices(const strategy& of, const distributed_value<gradient>& value) {
  return {value.local_results(), of.layout().worker_devices};
}

// A value that is one for all replicas is its own mean, and has no sum.
std::optional<gradient> reduced_as_it_is(reduce_op op, const distributed_value<gradient>& value,
                                         const strategy& of) {
  if (!value.is_mirrored() || !is_one_for_all(value.size(), of.layout().group.get()))
    return std::nullopt;
  reduce_scope over{.replicas = of.num_replicas_in_sync()};
  return as_gradient(reduce_leaves(op, flatten(value), over)().front());
}

pending<std::vector<gradient>>
batch_reduce(reduce_op op, const std::vector<std::pair<device_values, destinations>>& given,
             process_exchange& exchange) {
  std::vector<pending<gradient>> each;
  for (size_t i = 0; i < given.size(); ++i)
    each.push_back(
      reduce_components(op, given[i].first.components, &exchange, fmt::format("value {}", i)));
  return [each = std::move(each)] {
    std::vector<gradient> reduced;
    for (const auto& one : each)
      reduced.push_back(one());
    return reduced;
  };
}

// Whether devices of all processes reduce it where it lies.
bool stays_on_devices(const array_group& brought, const process_group* group,
                      const communication_options& options) {
  if (group == nullptr || brought.kind != array_kind::dense) return false;
  auto type = brought.parts.front().type();
  if (type != dtype::f32 && type != dtype::f64) return false;
  auto implementation = group->options.merge(options).implementation;
  collective_call call{.kind = collective_kind::all_reduce,
                       .contributions = brought.parts,
                       .on_devices = goes_to_devices(implementation, *group)};
  return group->has_devices && is_for_devices(call, group->size);
}

// Ends the replicas of a run inside a merge function if the outer run is given up.
struct nested_run {
  replica_group group;
  bool is_over = false;

  explicit nested_run(replica_group started) : group(std::move(started)) {}

  nested_run(const nested_run&) = delete;
  nested_run& operator=(const nested_run&) = delete;

  ~nested_run() {
    if (!is_over) group.kill();
  }
};

// The operand of a change that concerns all copies.
variable_operand operand_for_all(const variable& target, variable_operand operand) {
  auto mirrored = [&](const auto& value) -> variable_operand {
    if (!value.is_mirrored())
      throw failure{{errc::type_mismatch,
                     fmt::format("Expected value to be mirrored across replicas: variable '{}' "
                                 "would get another value for each; reduce it first",
                                 target.name())}};
    return value.primary();
  };
  if (const auto* value = std::get_if<distributed_value<tensor>>(&operand)) return mirrored(*value);
  if (const auto* value = std::get_if<distributed_value<indexed_slices>>(&operand))
    return mirrored(*value);
  return operand;
}

} // namespace

task<tensor> update_context::read(variable source) {
  auto reading = read_copy(activity_, source, component_of(source, component_));
  auto value = co_await reading;
  co_return value;
}

task<tensor> update_context::apply(variable target, change how, variable_operand operand) {
  check_made_by(name_of_assign(how), strategy_, target);
  auto taker = taker_of(component_, target.copies(), strategy_.num_local_replicas());
  if (const auto* value = std::get_if<distributed_value<tensor>>(&operand)) {
    operand = tensor{value->select(taker)};
  } else if (const auto* rows = std::get_if<distributed_value<indexed_slices>>(&operand)) {
    operand = indexed_slices{rows->select(taker)};
  } else if (const auto* from = std::get_if<variable>(&operand)) {
    auto reading = read(*from);
    auto value = co_await reading;
    operand = value;
  }
  auto changing
    = change_copy(activity_, target, component_of(target, component_), how, std::move(operand));
  auto value = co_await changing;
  co_return value;
}

uint32_t cross_replica_context::num_replicas_in_sync() const {
  return strategy_.num_replicas_in_sync();
}

const process_group* cross_replica_context::group() const {
  return strategy_.layout().group.get();
}

uint32_t cross_replica_context::num_local_replicas() const {
  return strategy_.num_local_replicas();
}

task<variable> cross_replica_context::make_variable(std::string name, tensor initial,
                                                    variable_options options) {
  auto bringing = bring_to_host({&initial});
  co_await bringing;
  strategy_.check_variable(name, initial, options);
  auto sharing = share_first(strategy::describe_variable(name, options), initial);
  auto shared = co_await sharing;
  co_return strategy_.add_variable(std::move(name), shared, options);
}

task<tensor> cross_replica_context::gather(distributed_value<tensor> value, int64_t axis) {
  auto gathering = gather_brought("gather", value.for_each_of(num_local_replicas()), axis);
  auto gathered = co_await gathering;
  co_return gathered.primary();
}

task<distributed_value<tensor>>
cross_replica_context::gather_brought(std::string what, std::vector<tensor> parts, int64_t axis,
                                      communication_options options) {
  brought_arrays arrays{{{array_kind::row_numbers, parts, {}}}};
  auto& brought = arrays.groups.front();
  size_t bytes = 0;
  for (const auto& part : parts) {
    brought.lay.push_back(part.device());
    bytes += part.bytes();
  }
  if (arrays.is_on_devices()) {
    if (group() == nullptr) brought.axis = cross_device_ops::gathered_axis(parts, axis);
    auto preparing = prepare(arrays, reduce_op::sum, false, options);
    co_await preparing;
    axis = brought.outcome ? 0 : axis; // that of placeholders
  }
  auto plan = [components = brought.parts, axis](process_exchange* exchange) {
    return gather_components(components, axis, exchange);
  };
  auto gathering = exchanged(std::move(what), bytes, plan, options);
  auto gathered = co_await gathering;
  if (!arrays.is_on_devices())
    co_return distributed_value<tensor>::mirrored(gathered, parts.size());
  auto placing = placed(arrays, arrays_of(std::vector<leaf>{gathered}), parts.size());
  auto there = co_await placing;
  std::vector<tensor> results;
  for (const auto& one : there)
    results.push_back(one.groups.front().parts.front());
  co_return distributed_value<tensor>::per_replica(std::move(results));
}

task<void> cross_replica_context::bring_to_host(std::vector<tensor*> arrays) {
  return troupe::bring_to_host(activity_, strategy_.devices(), std::move(arrays));
}

task<void> cross_replica_context::bring_gradients(std::span<gradient> gradients) {
  std::vector<tensor*> there;
  for (auto& one : gradients)
    std::ranges::copy(arrays_in(one), std::back_inserter(there));
  return bring_to_host(std::move(there));
}

// Alone, a process has operations that know devices; but for rows, which these leave to the host.
task<void> cross_replica_context::prepare_for_others(std::vector<gradient>& components,
                                                     reduce_op op, communication_options options) {
  auto leaves = flatten_all(pointers_to(std::as_const(components)));
  auto arrays = arrays_of(leaves);
  auto is_dense = std::holds_alternative<tensor>(components.front());
  if (!arrays.is_on_devices() || (is_dense && group() == nullptr)) co_return;
  auto preparing = prepare(arrays, op, group() == nullptr, options);
  co_await preparing;
  put_back(leaves, arrays);
  components = gradients_in(leaves.front());
}

task<void> cross_replica_context::prepare(brought_arrays& arrays, reduce_op op, bool on_host,
                                          communication_options options) {
  if (!on_host && group() == nullptr) {
    auto combining = combine_on_devices(activity_, strategy_.devices(), op, arrays);
    co_await combining;
  }
  std::vector<tensor*> elsewhere;
  for (auto& each : arrays.groups)
    if (on_host || !stays_on_devices(each, group(), options))
      for (auto& part : each.parts)
        elsewhere.push_back(&part);
  auto bringing = bring_to_host(std::move(elsewhere));
  co_await bringing;
}

task<std::vector<brought_arrays>> cross_replica_context::placed(const brought_arrays& brought,
                                                                brought_arrays result,
                                                                size_t replicas) {
  return placed_for(activity_, strategy_.devices(), brought, std::move(result), replicas);
}

task<tensor> cross_replica_context::read(variable source) {
  auto is_kept_apart = source.synchronization() == variable_synchronization::on_read;
  auto has_whole = source.aggregation() != variable_aggregation::none;
  if (group() != nullptr && is_kept_apart && has_whole) {
    auto combining = read_over_processes(std::move(source));
    auto combined = co_await combining;
    co_return combined;
  }
  auto reading = read_copy(activity_, source, whole_variable);
  auto value = co_await reading;
  co_return value;
}

task<tensor> cross_replica_context::read_over_processes(variable source) {
  std::vector<tensor> copies;
  for (uint32_t i = 0; i < source.copies(); ++i) {
    auto reading = read_copy(activity_, source, static_cast<int32_t>(i));
    auto copy = co_await reading;
    copies.push_back(std::move(copy));
  }
  auto plan = [copies, mode = source.aggregation()](process_exchange* exchange) {
    return mode == variable_aggregation::only_first_replica
             ? exchange->broadcast(copies.front())
             : reduce_arrays(to_reduce_op(mode), copies, exchange);
  };
  auto combining = exchanged(fmt::format("read of variable '{}'", source.name()), 0, plan);
  auto combined = co_await combining;
  co_return combined;
}

task<tensor> cross_replica_context::apply(variable target, change how, variable_operand operand) {
  check_made_by(name_of_assign(how), strategy_, target);
  operand = operand_for_all(target, std::move(operand));
  if (const auto* from = std::get_if<variable>(&operand)) {
    auto reading = read(*from);
    auto value = co_await reading;
    operand = value;
  }
  auto changing = change_copy(activity_, target, whole_variable, how, std::move(operand));
  auto value = co_await changing;
  co_return value;
}

task<distributed_value<gradient>>
cross_replica_context::reduce_to(reduce_op op, distributed_value<gradient> value, destinations to,
                                 communication_options options) {
  auto count = to.devices().size();
  if (auto as_it_is = reduced_as_it_is(op, value, strategy_))
    co_return distributed_value<gradient>::mirrored(std::move(*as_it_is), count);
  const auto* ops = &strategy_.cross_device_operations();
  auto given = on_devices(strategy_, value);
  auto preparing = prepare_for_others(given.components, op, options);
  co_await preparing;
  auto plan = [ops, op, given, to](process_exchange* exchange) -> pending<gradient> {
    if (exchange != nullptr) return reduce_components(op, given.components, exchange);
    return [ops, op, given, to] { return ops->reduce(op, given, to); };
  };
  auto bytes = bytes_of(flatten(value));
  if (ops->waits()) bytes = std::max(bytes, few_bytes);
  auto reducing = exchanged(describe_reduction("reduce_to", op), bytes, plan, options);
  auto reduced = co_await reducing;
  auto bringing = bring_gradients({&reduced, 1});
  co_await bringing;
  co_return distributed_value<gradient>::mirrored(std::move(reduced), count);
}

task<distributed_value<tensor>> cross_replica_context::reduce_to(reduce_op op,
                                                                 distributed_value<tensor> value,
                                                                 destinations to,
                                                                 communication_options options) {
  auto reducing = reduce_to(op, as_gradients(value), std::move(to), options);
  auto reduced = co_await reducing;
  co_return distributed_value<tensor>::mirrored(std::get<tensor>(reduced.primary()),
                                                reduced.size());
}

task<std::vector<distributed_value<gradient>>> cross_replica_context::batch_reduce_to(
  reduce_op op, std::vector<std::pair<distributed_value<gradient>, destinations>> values,
  communication_options options) {
  std::vector<distributed_value<gradient>> results(values.size());
  std::vector<std::pair<device_values, destinations>> given;
  std::vector<size_t> places;
  size_t bytes = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [value, to] = values[i];
    if (auto as_it_is = reduced_as_it_is(op, value, strategy_)) {
      results[i] = distributed_value<gradient>::mirrored(std::move(*as_it_is), to.devices().size());
      continue;
    }
    bytes += bytes_of(flatten(value));
    auto& components = given.emplace_back(on_devices(strategy_, value), to).first.components;
    auto preparing = prepare_for_others(components, op, options);
    co_await preparing;
    places.push_back(i);
  }
  const auto* ops = &strategy_.cross_device_operations();
  if (ops->waits()) bytes = std::max(bytes, few_bytes);
  auto plan = [ops, op, given, options](process_exchange* exchange) {
    if (exchange != nullptr) return batch_reduce(op, given, *exchange);
    return pending<std::vector<gradient>>{
      [ops, op, given, options] { return ops->batch_reduce(op, given, options); }};
  };
  auto reducing = exchanged(describe_reduction("batch_reduce_to", op), bytes, plan, options);
  auto reduced = co_await reducing;
  auto bringing = bring_gradients(reduced);
  co_await bringing;
  for (size_t i = 0; i < places.size(); ++i)
    results[places[i]] = distributed_value<gradient>::mirrored(
      std::move(reduced[i]), values[places[i]].second.devices().size());
  co_return results;
}

task<distributed_value<tensor>> cross_replica_context::broadcast_to(tensor value, destinations to) {
  auto shared = strategy_.layout().cross_device_operations->broadcast(value, to);
  co_return distributed_value<tensor>::mirrored(std::move(shared), to.devices().size());
}

void cross_replica_context::check_alike(std::span<const reduce_op> ops) const {
  auto first = strategy_.first_local_replica();
  for (size_t i = 1; i < ops.size(); ++i)
    if (ops[i] != ops[0])
      throw failure{{errc::failed_precondition,
                     fmt::format("replica {} reduces by {}, replica {} by {}; all replicas have to "
                                 "reduce alike",
                                 first + i, to_string(ops[i]), first, to_string(ops[0]))}};
}

std::string cross_replica_context::describe_reduction(std::string_view call, reduce_op op) {
  return fmt::format("{} {}", call, to_string(op));
}

task<std::vector<leaf>>
cross_replica_context::reduce_flat(reduce_op op, std::vector<leaf_group> leaves,
                                   std::optional<std::vector<int64_t>> axes) {
  auto arrays = arrays_of(leaves);
  if (arrays.is_on_devices()) {
    arrays.find_one_for_all(num_replicas_in_sync());
    auto preparing = prepare(arrays, op, axes || group() != nullptr);
    co_await preparing;
    put_back(leaves, arrays);
  }
  auto plan = [op, leaves = std::move(leaves), axes = std::move(axes),
               replicas = num_replicas_in_sync()](process_exchange* exchange) {
    return reduce_leaves(op, leaves, {axes, exchange, replicas});
  };
  auto reducing = exchanged(describe_reduction("reduce", op), 0, plan);
  auto reduced = co_await reducing;
  if (!arrays.is_on_devices()) co_return reduced;
  auto placing = placed(arrays, arrays_of(reduced), 1);
  auto there = co_await placing;
  put_back(reduced, there.front());
  co_return reduced;
}

task<std::vector<std::vector<leaf>>>
cross_replica_context::all_reduce_flat(std::vector<reduce_op> ops, std::vector<leaf_group> leaves,
                                       communication_options options) {
  check_alike(ops);
  auto op = ops.front();
  auto bytes = bytes_of(leaves);
  auto arrays = arrays_of(leaves);
  if (arrays.is_on_devices()) {
    auto preparing = prepare(arrays, op, false, options);
    co_await preparing;
    put_back(leaves, arrays);
  }
  auto plan = [op, leaves = std::move(leaves),
               replicas = num_replicas_in_sync()](process_exchange* exchange) {
    return reduce_leaves(op, leaves, {.exchange = exchange, .replicas = replicas});
  };
  auto reducing = exchanged(describe_reduction("all_reduce", op), bytes, plan, options);
  auto reduced = co_await reducing;
  std::vector<std::vector<leaf>> results(arrays.is_on_devices() ? ops.size() : 1, reduced);
  if (!arrays.is_on_devices()) co_return results;
  auto placing = placed(arrays, arrays_of(reduced), ops.size());
  auto there = co_await placing;
  for (size_t i = 0; i < results.size(); ++i)
    put_back(results[i], there[i]);
  co_return results;
}

task<tensor> cross_replica_context::gather_rows(std::string what, tensor own) {
  if (group() == nullptr) co_return own;
  auto plan = [own](process_exchange* exchange) { return exchange->gather({&own, 1}); };
  auto gathering = exchanged(std::move(what), 0, plan);
  auto all = co_await gathering;
  co_return all;
}

task<tensor> cross_replica_context::share_first(std::string what, tensor own) {
  if (group() == nullptr) co_return own;
  auto plan = [own](process_exchange* exchange) { return exchange->broadcast_to_all(own); };
  auto sharing = exchanged(std::move(what), 0, plan);
  auto first = co_await sharing;
  co_return first;
}

task<void> cross_replica_context::settle(process_exchange& exchange,
                                         communication_options options) {
  const auto& group = exchange.group();
  auto calls = exchange.calls();
  troupe::prepare(calls, group, options);
  for (const auto& call : calls)
    if (!call.on_devices || !is_for_devices(call, group.size)) check_on_host(call.contributions);
  auto per_pack = group.options.merge(options).bytes_per_pack;
  size_t bytes = 0;
  for (const auto& call : calls)
    for (const auto& contribution : call.contributions)
      bytes += contribution.bytes();
  auto work = [calls, per_pack] { return pack(calls, per_pack); };
  auto packing = compute(bytes, work);
  auto packed = co_await packing;
  std::vector<std::pair<communicator_actor, collective_call>> requests;
  for (auto& call : packed.calls)
    requests.emplace_back(group.communicator, std::move(call));
  auto asking = activity_.request_all<collective_result>(std::move(requests));
  auto answers = co_await asking;
  std::vector<tensor> results;
  for (auto& answer : answers)
    results.push_back(value_or_throw(std::move(answer)).value);
  auto unpacked = unpack(packed, calls, results);
  auto dividing = divide_on_devices(unpacked, exchange.divisors());
  co_await dividing;
  exchange.settle(std::move(unpacked));
}

// Divides sums that devices have made; the means stay there.
task<void> cross_replica_context::divide_on_devices(std::vector<tensor>& sums,
                                                    const std::vector<double>& divisors) {
  for (size_t i = 0; i < sums.size(); ++i) {
    if (!is_on_device(sums[i]) || divisors[i] == 1) continue;
    auto at = strategy_.devices().at(sums[i].device());
    if (!at) check_on_host(sums[i]); // no device can be asked
    auto mean = std::make_shared<tensor>();
    auto work = [mean, sum = sums[i], divisor = divisors[i]](compute_stream& on) {
      *mean = value_or_throw(on.sum({&sum, 1}, divisor));
    };
    auto dividing = activity_.offload_to(*at, "a mean", std::move(work));
    co_await dividing;
    sums[i] = *mean;
  }
}

task<run_outcome> cross_replica_context::run_on_replicas(std::vector<replica_body> bodies) {
  auto over = [host = activity_.handle()](run_outcome outcome) {
    caf::anon_send(host, wake{std::make_shared<run_outcome>(std::move(outcome)), nullptr});
  };
  nested_run running{start_replicas(strategy_, std::move(bodies), over)};
  auto sleeping = activity_.woken();
  auto woken = co_await sleeping;
  running.is_over = true;
  co_return std::move(*std::static_pointer_cast<run_outcome>(woken));
}

task<std::vector<std::shared_ptr<void>>>
cross_replica_context::run_updates(std::vector<update_body> bodies) {
  std::vector<std::shared_ptr<void>> results;
  for (uint32_t i = 0; i < bodies.size(); ++i) {
    update_context context{strategy_, activity_, i};
    context_guard entered{{context_kind::update, &strategy_, nullptr, i}};
    auto updating = bodies[i](context);
    auto result = co_await updating;
    results.push_back(std::move(result));
  }
  co_return results;
}

} // namespace troupe
