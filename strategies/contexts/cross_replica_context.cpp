// SPDX-License-Identifier: Apache-2.0
// The calls of merge functions and update functions.
#include "strategies/contexts/cross_replica_context.hpp"

#include "kernels/tensor/crc32c.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/replica_group.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/reduce/reduce_leaves.hpp"

#include <caf/send.hpp>

#include <fmt/format.h>

namespace troupe {

namespace {

// Where each replica's value lies.
device_values on_devices(const strategy& strategy, const distributed_value<gradient>& value) {
  return {value.local_results(), strategy.layout().worker_devices};
}

// A value that is one for all replicas is its own mean, and has no sum.
std::optional<gradient> reduced_as_it_is(reduce_op op, const distributed_value<gradient>& value,
                                         const strategy& strategy) {
  if (!value.is_mirrored() || !is_one_for_all(value.size(), strategy.layout().group.get()))
    return std::nullopt;
  reduce_scope scope{.replicas = strategy.num_replicas_in_sync()};
  return as_gradient(reduce_leaves(op, flatten(value), scope)().front());
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
      throw_failure(errc::type_mismatch,
                    "Expected value to be mirrored across replicas: variable '{}' would get "
                    "another value for each; reduce it first",
                    target.name());
    return value.primary();
  };
  if (const auto* value = std::get_if<distributed_value<tensor>>(&operand)) return mirrored(*value);
  if (const auto* value = std::get_if<distributed_value<indexed_slices>>(&operand))
    return mirrored(*value);
  return operand;
}

} // namespace

task<tensor> update_context::read(variable source) {
  return read_copy(activity_, source, component_of(source, component_));
}

task<tensor> update_context::apply(variable target, change operation, variable_operand operand) {
  check_made_by(name_of_assign(operation), strategy_, target);
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
  auto changing = change_copy(activity_, target, component_of(target, component_), operation,
                              std::move(operand));
  auto value = co_await changing;
  co_return value;
}

cross_replica_context::cross_replica_context(troupe::strategy& strategy, activity& activity)
  : strategy_(strategy), activity_(activity), reducer_(strategy.site_of_reductions(), activity) {}

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
  auto sharing = reducer_.share_first(strategy::describe_variable(name, options), initial);
  auto shared = co_await sharing;
  co_return strategy_.add_variable(std::move(name), shared, options);
}

task<tensor> cross_replica_context::gather(distributed_value<tensor> value, int64_t axis) {
  auto gathering = reducer_.gather({"gather"}, value.for_each_of(num_local_replicas()), axis);
  auto gathered = co_await gathering;
  co_return gathered.front();
}

task<distributed_value<tensor>>
cross_replica_context::gather_brought(std::vector<tensor> parts, int64_t axis,
                                      communication_options options) {
  auto takers = parts.size();
  reduction_call call{.name = "all_gather", .options = options};
  auto gathering = reducer_.gather(std::move(call), std::move(parts), axis);
  auto gathered = co_await gathering;
  if (gathered.size() < takers)
    co_return distributed_value<tensor>::mirrored(gathered.front().as_read_only(), takers);
  co_return distributed_value<tensor>::per_replica(std::move(gathered));
}

task<void> cross_replica_context::bring_to_host(std::vector<tensor*> arrays) {
  return reducer_.bring_to_host(std::move(arrays));
}

task<tensor> cross_replica_context::read(variable source) {
  auto has_own_copies = source.synchronization() == variable_synchronization::on_read;
  auto is_aggregated = source.aggregation() != variable_aggregation::none;
  if (group() != nullptr && has_own_copies && is_aggregated)
    return read_over_processes(std::move(source));
  return read_copy(activity_, source, whole_variable);
}

task<tensor> cross_replica_context::read_over_processes(variable source) {
  auto reading = read_copies(activity_, source);
  auto copies = co_await reading;
  leaf_group group{.parts = {copies.begin(), copies.end()}};
  reduction_call call{fmt::format("read of variable '{}'", source.name())};
  if (source.aggregation() == variable_aggregation::only_first_replica) {
    auto sharing = reducer_.broadcast(std::move(call), group.parts.front());
    auto first = co_await sharing;
    co_return std::get<tensor>(first);
  }
  call.op = to_reduce_op(source.aggregation());
  auto combining = reducer_.reduce(std::move(call), {group}, 1);
  auto combined = co_await combining;
  co_return std::get<tensor>(combined.front().front());
}

task<distributed_value<tensor>> cross_replica_context::read_each(variable source) {
  auto reading = read_copies(activity_, source);
  auto copies = co_await reading;
  copies.resize(num_local_replicas(), copies.front()); // which share a variable without copies
  std::ranges::transform(copies, copies.begin(), own_handle);
  co_return distributed_value<tensor>::per_replica(std::move(copies));
}

task<tensor> cross_replica_context::apply(variable target, change operation,
                                          variable_operand operand) {
  check_made_by(name_of_assign(operation), strategy_, target);
  operand = operand_for_all(target, std::move(operand));
  if (const auto* from = std::get_if<variable>(&operand)) {
    auto reading = read(*from);
    auto value = co_await reading;
    operand = value;
  }
  auto changing = change_copy(activity_, target, whole_variable, operation, std::move(operand));
  auto value = co_await changing;
  co_return value;
}

task<distributed_value<gradient>>
cross_replica_context::reduce_to(reduce_op op, distributed_value<gradient> value, destinations to,
                                 communication_options options) {
  options.validate();
  auto count = to.devices().size();
  if (auto as_it_is = reduced_as_it_is(op, value, strategy_))
    co_return distributed_value<gradient>::mirrored(std::move(*as_it_is), count);
  std::vector<replica_gradients> gradients;
  gradients.push_back({.values = on_devices(strategy_, value), .to = std::move(to)});
  reduction_call call{.name = describe_reduction("reduce_to", op), .op = op, .options = options};
  auto reducing = reducer_.reduce_gradients(std::move(call), std::move(gradients));
  auto reduced = co_await reducing;
  co_return distributed_value<gradient>::mirrored(std::move(reduced.front().front()), count);
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
  options.validate();
  std::vector<distributed_value<gradient>> results(values.size());
  std::vector<replica_gradients> gradients;
  std::vector<size_t> places;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [value, to] = values[i];
    if (auto as_it_is = reduced_as_it_is(op, value, strategy_)) {
      results[i] = distributed_value<gradient>::mirrored(std::move(*as_it_is), to.devices().size());
      continue;
    }
    gradients.push_back({.name = fmt::format("value {}", places.size()),
                         .values = on_devices(strategy_, value),
                         .to = to});
    places.push_back(i);
  }
  reduction_call call{
    .name = describe_reduction("batch_reduce_to", op), .op = op, .options = options};
  auto reducing = reducer_.reduce_gradients(std::move(call), std::move(gradients));
  auto reduced = co_await reducing;
  for (size_t i = 0; i < places.size(); ++i)
    results[places[i]] = distributed_value<gradient>::mirrored(
      std::move(reduced[i].front()), values[places[i]].second.devices().size());
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
      throw_failure(errc::failed_precondition,
                    "replica {} reduces by {}, replica {} by {}; all replicas have to reduce alike",
                    first + i, to_string(ops[i]), first, to_string(ops[0]));
}

std::string cross_replica_context::describe_reduction(std::string_view call, reduce_op op,
                                                      const std::string& structure) {
  if (structure.empty()) return fmt::format("{} {}", call, to_string(op));
  constexpr size_t shown = 200; // the checksum stands for the rest
  if (structure.size() <= shown) return fmt::format("{} {} of {}", call, to_string(op), structure);
  return fmt::format("{} {} of {}... (checksum {:08x})", call, to_string(op),
                     std::string_view{structure}.substr(0, shown),
                     cpu::crc32c(std::as_bytes(std::span{structure})));
}

task<run_outcome> cross_replica_context::run_on_replicas(std::vector<replica_body> bodies) {
  auto over = [host = activity_.handle()](run_outcome outcome) {
    caf::anon_send(host, wake{std::make_shared<run_outcome>(std::move(outcome)), nullptr});
  };
  nested_run running{start_replicas(strategy_, std::move(bodies), over)};
  auto sleeping = activity_.woken();
  auto woken = co_await sleeping;
  running.is_over = true;
  auto outcome = std::static_pointer_cast<run_outcome>(woken);
  if (outcome->thrown) ++strategy_.failed_runs_;
  co_return std::move(*outcome);
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
