// SPDX-License-Identifier: Apache-2.0
// What a merge function sees: all replicas at once.
#pragma once

#include "strategies/contexts/context.hpp"
#include "strategies/contexts/replica_function.hpp"
#include "strategies/contexts/variable_access.hpp"
#include "strategies/reduce/brought_arrays.hpp"
#include "strategies/reduce/process_exchange.hpp"
#include "strategies/reduce/reduce_leaves.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// In an update function: one copy of the variable that is updated. Reads and changes are of that
/// copy alone.
class update_context final : public variable_access {
public:
  update_context(const troupe::strategy& of, activity& activity, uint32_t component)
    : strategy_(of), activity_(activity), component_(component) {}

  /// Which copy.
  [[nodiscard]] uint32_t replica_id() const { return component_; }

  [[nodiscard]] task<tensor> read(variable source) override;

protected:
  [[nodiscard]] task<tensor> apply(variable target, change how, variable_operand operand) override;

private:
  const troupe::strategy& strategy_;
  activity& activity_;
  uint32_t component_;
};

/// What can be done while all replicas wait, or none is there: in merge functions, which are given
/// it. What it awaits throws `failure`.
///
/// Thread: only the function that it was given to.
class cross_replica_context final : public variable_access {
public:
  cross_replica_context(troupe::strategy& of, activity& activity)
    : strategy_(of), activity_(activity) {}

  [[nodiscard]] troupe::strategy& strategy() const { return strategy_; }

  [[nodiscard]] uint32_t num_replicas_in_sync() const;

  /// The processes that run replicas of the strategy; null if this one runs all.
  [[nodiscard]] const process_group* group() const;

  /// As `strategy::make_variable`. All processes have to make it.
  [[nodiscard]] task<variable> make_variable(std::string name, tensor initial,
                                             variable_options options = {});

  /// As `strategy::reduce`.
  template <class T>
  [[nodiscard]] auto reduce(reduce_op op, T value,
                            std::optional<std::vector<int64_t>> axes = std::nullopt)
    -> task<unflattened_t<T>> {
    auto reducing = reduce_flat(op, flatten(value), std::move(axes));
    auto leaves = co_await reducing;
    co_return unflatten(leaves, value);
  }

  /// As `strategy::gather`.
  [[nodiscard]] task<tensor> gather(distributed_value<tensor> value, int64_t axis);

  /// What `all_gather` does with what the replicas bring.
  [[nodiscard]] task<distributed_value<tensor>> gather_brought(std::string what,
                                                               std::vector<tensor> parts,
                                                               int64_t axis,
                                                               communication_options options = {});

  /// The value of a variable as a whole. Where processes hold copies that are made one on read, all
  /// of them have to read it.
  [[nodiscard]] task<tensor> read(variable source) override;

  /// A value reduced, for all of `to`. A value that is the same for all replicas stays as it is
  /// under MEAN; under SUM it is refused, as it would be counted several times.
  /// Errors: throws `failure` as `reduce_components`, and as `exchanged`.
  [[nodiscard]] task<distributed_value<tensor>> reduce_to(reduce_op op,
                                                          distributed_value<tensor> value,
                                                          destinations to,
                                                          communication_options options = {});
  [[nodiscard]] task<distributed_value<gradient>> reduce_to(reduce_op op,
                                                            distributed_value<gradient> value,
                                                            destinations to,
                                                            communication_options options = {});

  /// Likewise for several values together, which may be packed; the results are in their order.
  [[nodiscard]] task<std::vector<distributed_value<gradient>>>
  batch_reduce_to(reduce_op op,
                  std::vector<std::pair<distributed_value<gradient>, destinations>> values,
                  communication_options options = {});

  /// The same value on all of `to`.
  [[nodiscard]] task<distributed_value<tensor>> broadcast_to(tensor value, destinations to);

  /// Runs `work()` on the world's computing threads if it moves many bytes, else at once.
  /// Errors: rethrows what `work` threw.
  template <class Work>
  [[nodiscard]] task<std::invoke_result_t<Work&>> compute(size_t bytes, Work work) {
    if (bytes < few_bytes) co_return work();
    auto there = hand_over(&strategy_, std::move(work));
    auto working = activity_.offload(std::move(there.run));
    co_await working;
    co_return std::move(**there.result);
  }

  /// Runs a reduction over the replicas of all processes. All of them have to make the call.
  /// @param plan `pending<R> plan(process_exchange*)`: notes what it needs of other processes, of
  /// which there are none if the exchange is null, and returns what gives the result afterwards.
  /// @param what As `process_exchange` has it. @param bytes That the result takes to compute here.
  /// Errors: rethrows what `plan` and its result threw; throws `failure`: invalid_argument if
  /// another process makes another call, and for options that are none; deadline_exceeded and
  /// unavailable, naming the one that is missing or gone.
  template <class Plan, class Pending = std::invoke_result_t<Plan&, process_exchange*>>
  [[nodiscard]] task<typename Pending::result_type>
  exchanged(std::string what, size_t bytes, Plan plan, communication_options options = {}) {
    options.validate();
    std::optional<process_exchange> exchange;
    if (group() != nullptr) exchange.emplace(*group(), std::move(what));
    Pending finish = plan(exchange ? &*exchange : nullptr);
    if (exchange) {
      auto settling = settle(*exchange, options);
      co_await settling;
    }
    auto finishing = compute(bytes, std::move(finish));
    auto result = co_await finishing;
    co_return result;
  }

  /// What each process has, behind each other in the order of ranks. Errors: as `exchanged`.
  /// Shape: own  [rows, ...], of any number of rows
  [[nodiscard]] task<tensor> gather_rows(std::string what, tensor own);

  /// What the first process has, for all; it learns, too, if another makes another call.
  /// Errors: as `exchanged`. Cost: a barrier.
  [[nodiscard]] task<tensor> share_first(std::string what, tensor own);

  /// Runs a function once for each copy of a variable, one after the other.
  /// @param function `R f(update_context&, variable, Arguments...)` or a coroutine `task<R>
  /// f(...)`.
  /// @param arguments For each copy its own of distributed values. Where all replicas share the
  /// variable, values are one for all, or mirrored.
  /// @returns What the function returned for each copy, regrouped.
  /// Errors: throws `failure` with invalid_argument for a variable of another strategy, and for a
  /// value for each replica, at any depth, where all share the variable.
  template <class Function, class... Arguments>
  [[nodiscard]] auto update(variable target, Function function, Arguments... arguments) -> task<
    regrouped_t<awaited_result_t<Function, update_context, variable, selected_t<Arguments>...>>> {
    check_made_by("update", strategy_, target);
    auto bodies
      = update_bodies(target.copies(), num_local_replicas(), function, target, arguments...);
    auto updating = run_updates(std::move(bodies));
    auto results = co_await updating;
    using result_type
      = awaited_result_t<Function, update_context, variable, selected_t<Arguments>...>;
    co_return regroup_erased<result_type>(results);
  }

  /// Runs a function for each device that holds state which belongs to no single variable.
  /// @param function `R f(update_context&, Arguments...)` or a coroutine `task<R> f(...)`.
  /// @param devices As `extended().non_slot_devices` gives them.
  /// Errors: throws `failure` with invalid_argument for no devices, and for a value for each
  /// replica where there are fewer devices than replicas.
  template <class Function, class... Arguments>
  [[nodiscard]] auto update_non_slot(std::vector<std::string> devices, Function function,
                                     Arguments... arguments)
    -> task<regrouped_t<awaited_result_t<Function, update_context, selected_t<Arguments>...>>> {
    static_cast<void>(destinations{devices}); // refuses none
    auto copies = static_cast<uint32_t>(devices.size());
    auto bodies = update_bodies(copies, num_local_replicas(), function, arguments...);
    auto updating = run_updates(std::move(bodies));
    auto results = co_await updating;
    using result_type = awaited_result_t<Function, update_context, selected_t<Arguments>...>;
    co_return regroup_erased<result_type>(results);
  }

  /// Runs a function on every replica, as `strategy::run` does; its replicas are others than those
  /// that wait in the merge_call.
  template <class Function, class... Arguments>
  [[nodiscard]] auto call_for_each_replica(Function function, Arguments... arguments)
    -> task<regrouped_t<run_result_t<Function, Arguments...>>> {
    auto bodies = bodies_for(num_local_replicas(), function, arguments...);
    auto running = run_on_replicas(std::move(bodies));
    auto outcome = co_await running;
    if (outcome.thrown) std::rethrow_exception(outcome.thrown);
    co_return regroup_erased<run_result_t<Function, Arguments...>>(outcome.results);
  }

  /// The actor that this runs in.
  [[nodiscard]] troupe::activity& host() const { return activity_; }

  /// What `all_reduce` does with what the replicas bring.
  template <class T>
  [[nodiscard]] task<distributed_value<T>>
  reduce_brought(std::vector<reduce_op> ops, std::vector<std::shared_ptr<const T>> brought,
                 communication_options options) {
    std::vector<const T*> values;
    for (const auto& each : brought)
      values.push_back(each.get());
    auto reducing = all_reduce_flat(std::move(ops), flatten_all(values), options);
    auto of_replicas = co_await reducing;
    if (of_replicas.size() == 1)
      co_return distributed_value<T>::mirrored(unflatten(of_replicas.front(), *values.front()),
                                               brought.size());
    std::vector<T> results;
    for (const auto& leaves : of_replicas)
      results.push_back(unflatten(leaves, *values.front()));
    co_return distributed_value<T>::per_replica(std::move(results));
  }

  /// Copies arrays to the host's memory, wherever they lie. Errors: as `troupe::bring_to_host`.
  [[nodiscard]] task<void> bring_to_host(std::vector<tensor*> arrays);

  /// Likewise. @param gradients Live until this is over.
  [[nodiscard]] task<void> bring_gradients(std::span<gradient> gradients);

  /// Makes arrays ready for a reduction by the host, or by the devices of all processes: what lies
  /// on a device is combined there if all replicas are here; stays there if devices reduce between
  /// processes; else it comes to the host.
  /// @param arrays Lives until this is over. @param on_host Whether all are to come there.
  /// Errors: as `combine_on_devices`.
  [[nodiscard]] task<void> prepare(brought_arrays& arrays, reduce_op op, bool on_host,
                                   communication_options options = {});

protected:
  [[nodiscard]] task<tensor> apply(variable target, change how, variable_operand operand) override;

private:
  void check_alike(std::span<const reduce_op> ops) const;
  [[nodiscard]] task<std::vector<brought_arrays>> placed(const brought_arrays& brought,
                                                         brought_arrays result, size_t replicas);
  [[nodiscard]] static std::string describe_reduction(std::string_view call, reduce_op op);
  [[nodiscard]] uint32_t num_local_replicas() const;

  [[nodiscard]] task<tensor> read_over_processes(variable source);

  [[nodiscard]] task<std::vector<leaf>> reduce_flat(reduce_op op, std::vector<leaf_group> leaves,
                                                    std::optional<std::vector<int64_t>> axes);

  /// @returns One list of leaves for all replicas; or, where devices have reduced them, one for
  /// each replica.
  [[nodiscard]] task<std::vector<std::vector<leaf>>> all_reduce_flat(std::vector<reduce_op> ops,
                                                                     std::vector<leaf_group> leaves,
                                                                     communication_options options);

  /// Makes all collectives that an exchange has noted, at once.
  [[nodiscard]] task<void> settle(process_exchange& exchange, communication_options options);
  [[nodiscard]] task<void> prepare_for_others(std::vector<gradient>& components, reduce_op op,
                                              communication_options options);
  [[nodiscard]] task<void> divide_on_devices(std::vector<tensor>& sums,
                                             const std::vector<double>& divisors);
  [[nodiscard]] task<run_outcome> run_on_replicas(std::vector<replica_body> bodies);
  [[nodiscard]] task<std::vector<std::shared_ptr<void>>>
  run_updates(std::vector<update_body> bodies);

  /// Work that moves fewer bytes takes less time than handing it over.
  static constexpr size_t few_bytes = 1 << 19;

  troupe::strategy& strategy_;
  activity& activity_;
};

} // namespace troupe
