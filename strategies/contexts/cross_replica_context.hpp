// SPDX-License-Identifier: Apache-2.0
// The contexts of merge functions, for all replicas at once, and of updates, for one copy.
#pragma once

#include "messages/mapped.hpp"
#include "strategies/contexts/context.hpp"
#include "strategies/contexts/replica_function.hpp"
#include "strategies/contexts/variable_access.hpp"
#include "strategies/reduce/reducer.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The context of an update function: one copy of the variable that is updated. Reads and changes
/// concern that copy alone.
class update_context final : public variable_access {
public:
  update_context(const troupe::strategy& strategy, activity& activity, uint32_t component)
    : strategy_(strategy), activity_(activity), component_(component) {}

  /// The index of the copy.
  [[nodiscard]] uint32_t replica_id() const { return component_; }

  [[nodiscard]] task<tensor> read(variable source) override;

protected:
  [[nodiscard]] task<tensor> apply(variable target, change operation,
                                   variable_operand operand) override;

private:
  const troupe::strategy& strategy_;
  activity& activity_;
  uint32_t component_;
};

/// The calls that are possible while all replicas wait in a merge_call, or while none runs. Merge
/// functions are given this context. Its tasks throw `failure`.
///
/// Thread: only the function that it was given to.
class cross_replica_context final : public variable_access {
public:
  cross_replica_context(troupe::strategy& strategy, activity& activity);

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
    reduction_call call{describe_reduction("reduce", op, compared(value)), op, std::move(axes)};
    auto reducing = reducer_.reduce(std::move(call), flatten(value), 1);
    auto leaves = co_await reducing;
    co_return unflatten(leaves.front(), value);
  }

  /// As `strategy::gather`.
  [[nodiscard]] task<tensor> gather(distributed_value<tensor> value, int64_t axis);

  /// Gathers the parts that the replicas brought to an `all_gather`.
  [[nodiscard]] task<distributed_value<tensor>>
  gather_brought(std::vector<tensor> parts, int64_t axis, communication_options options = {});

  /// The value of a variable as a whole. If it is synchronised on read and several processes hold
  /// copies, all of them have to read it.
  [[nodiscard]] task<tensor> read(variable source) override;

  /// A value reduced, for all of `to`. A value that is the same for all replicas stays as it is
  /// under MEAN; under SUM it is refused, as it would be counted several times.
  /// Errors: throws `failure` as `reduce_components`, and as `reducer`.
  [[nodiscard]] task<distributed_value<tensor>> reduce_to(reduce_op op,
                                                          distributed_value<tensor> value,
                                                          destinations to,
                                                          communication_options options = {});
  [[nodiscard]] task<distributed_value<gradient>> reduce_to(reduce_op op,
                                                            distributed_value<gradient> value,
                                                            destinations to,
                                                            communication_options options = {});

  /// Reduces several values together, each as by `reduce_to`; they may share packs.
  /// @returns The results, in the order of the values.
  [[nodiscard]] task<std::vector<distributed_value<gradient>>>
  batch_reduce_to(reduce_op op,
                  std::vector<std::pair<distributed_value<gradient>, destinations>> values,
                  communication_options options = {});

  /// The same value on all of `to`.
  [[nodiscard]] task<distributed_value<tensor>> broadcast_to(tensor value, destinations to);

  /// Runs `work()` on the world's computing threads if it moves many bytes, else at once.
  /// Errors: rethrows what `work` threw.
  template <class Work>
  [[nodiscard]] auto compute(size_t bytes, Work work) {
    return reducer_.compute(bytes, std::move(work));
  }

  /// The reducer that combines the values of the replicas of all processes.
  [[nodiscard]] const reducer& reducing() const { return reducer_; }

  /// Runs a function once for each copy of a variable, one after the other.
  /// @param function `R f(update_context&, variable, Arguments...)` or a coroutine `task<R>
  /// f(...)`.
  /// @param arguments Each copy gets its own part of distributed values. Where all replicas share
  /// the variable, values are one for all, or mirrored.
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

  /// Runs a function on every replica, as `strategy::run` does, by new replicas: the others wait in
  /// the merge_call.
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

  /// Reduces the values that the replicas brought to an `all_reduce`.
  template <class T>
  [[nodiscard]] task<distributed_value<T>>
  reduce_brought(std::vector<reduce_op> ops, std::vector<std::shared_ptr<const T>> brought,
                 communication_options options) {
    auto values = troupe::mapped(brought, [](const auto& value) { return value.get(); });
    check_alike(ops);
    auto op = ops.front();
    reduction_call call{.name = describe_reduction("all_reduce", op, compared(*values.front())),
                        .op = op,
                        .options = std::move(options)};
    auto reducing = reducer_.reduce(std::move(call), flatten_all(values), brought.size());
    auto of_replicas = co_await reducing;
    if (of_replicas.size() == 1) {
      if (brought.size() > 1) std::ranges::for_each(of_replicas.front(), make_read_only);
      co_return distributed_value<T>::mirrored(unflatten(of_replicas.front(), *values.front()),
                                               brought.size());
    }
    auto results = troupe::mapped(
      of_replicas, [&](const auto& leaves) { return unflatten(leaves, *values.front()); });
    co_return distributed_value<T>::per_replica(std::move(results));
  }

  /// Copies arrays to the host's memory, wherever they lie. Errors: as `troupe::bring_to_host`.
  [[nodiscard]] task<void> bring_to_host(std::vector<tensor*> arrays);

protected:
  [[nodiscard]] task<tensor> apply(variable target, change operation,
                                   variable_operand operand) override;

private:
  friend class strategy;

  void check_alike(std::span<const reduce_op> ops) const;
  [[nodiscard]] static std::string describe_reduction(std::string_view call, reduce_op op,
                                                      const std::string& structure = {});

  // The structure of a nest, if other processes have to bring the same one; else nothing.
  template <class T>
  [[nodiscard]] std::string compared(const T& nest) const {
    return group() == nullptr ? std::string{} : structure_of(nest);
  }

  [[nodiscard]] uint32_t num_local_replicas() const;

  [[nodiscard]] task<tensor> read_over_processes(variable source);

  // The value that each replica of this process reads.
  [[nodiscard]] task<distributed_value<tensor>> read_each(variable source);

  [[nodiscard]] task<run_outcome> run_on_replicas(std::vector<replica_body> bodies);
  [[nodiscard]] task<std::vector<std::shared_ptr<void>>>
  run_updates(std::vector<update_body> bodies);

  troupe::strategy& strategy_;
  activity& activity_;
  reducer reducer_;
};

} // namespace troupe
