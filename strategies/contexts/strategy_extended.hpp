// SPDX-License-Identifier: Apache-2.0
// The calls of a strategy for authors of optimizers, metrics and layers.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "strategies/values/deferred_restore.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The part of a strategy that most users do not need. Its calls run in the cross-replica context,
/// and block until they are over. In a merge function, await the same calls of the
/// `cross_replica_context`.
///
/// Thread: the strategy's.
class strategy_extended {
public:
  explicit strategy_extended(strategy& strategy) : strategy_(strategy) {}

  strategy_extended(const strategy_extended&) = delete;
  strategy_extended& operator=(const strategy_extended&) = delete;

  /// As `strategy::run`.
  template <class Function, class... Arguments>
  auto call_for_each_replica(Function function, const Arguments&... arguments) {
    return strategy_.run(std::move(function), arguments...);
  }

  // As in `cross_replica_context`.

  [[nodiscard]] distributed_value<tensor> reduce_to(reduce_op op, distributed_value<tensor> value,
                                                    destinations to,
                                                    communication_options options = {});
  [[nodiscard]] distributed_value<gradient> reduce_to(reduce_op op,
                                                      distributed_value<gradient> value,
                                                      destinations to,
                                                      communication_options options = {});
  [[nodiscard]] std::vector<distributed_value<gradient>>
  batch_reduce_to(reduce_op op,
                  std::vector<std::pair<distributed_value<gradient>, destinations>> values,
                  communication_options options = {});
  [[nodiscard]] distributed_value<tensor> broadcast_to(tensor value, destinations to);

  template <class Function, class... Arguments>
  auto update(variable target, Function function, Arguments... arguments) {
    context_check::blocking("update", strategy_);
    return strategy_.cross_replica([=](cross_replica_context& context) {
      return context.update(target, function, arguments...);
    });
  }

  template <class Function, class... Arguments>
  auto update_non_slot(std::vector<std::string> devices, Function function,
                       Arguments... arguments) {
    context_check::blocking("update_non_slot", strategy_);
    return strategy_.cross_replica([=](cross_replica_context& context) {
      return context.update_non_slot(devices, function, arguments...);
    });
  }

  /// Where state lives that belongs to all of `variables`: all devices, if variables are mirrored
  /// or there is only one; else the device of the variable that comes first by name.
  /// Errors: throws `failure` with invalid_argument for no variables.
  [[nodiscard]] std::vector<std::string>
  non_slot_devices(std::span<const variable> variables) const;

  /// Variables that are made until the guard is gone live where `beside` does: in a cluster, on its
  /// parameter server. They take no turn among the parameter servers.
  /// Errors: throws `failure`: invalid_argument for a variable of another strategy; wrong_context
  /// outside the strategy's scope.
  [[nodiscard]] context_guard colocate_vars_with(const variable& beside) const;

  /// Whether this strategy made the variable.
  [[nodiscard]] bool variable_created_in_scope(const variable& variable) const;

  /// The value of a variable as the cross-replica context sees it.
  [[nodiscard]] tensor read_var(const variable& source) { return strategy_.read(source); }

  /// The variable that a handle is part of: here every handle is to a whole variable.
  [[nodiscard]] const variable& value_container(const variable& handle) const { return handle; }

  // Errors of both: throw `failure` with failed_precondition for the default strategy.

  [[nodiscard]] std::span<const std::string> worker_devices() const;
  [[nodiscard]] std::span<const std::string> parameter_devices() const;

  /// Whether every worker builds and drives a program of its own.
  [[nodiscard]] bool experimental_between_graph() const {
    return strategy_.layout().experimental_between_graph;
  }

  /// Whether this process initialises variables.
  [[nodiscard]] bool experimental_should_init() const {
    return strategy_.layout().experimental_should_init;
  }

  [[nodiscard]] bool should_checkpoint() const { return strategy_.layout().should_checkpoint; }

  [[nodiscard]] bool should_save_summary() const { return strategy_.layout().should_save_summary; }

  /// Whether batches must all have the same shape.
  [[nodiscard]] bool experimental_require_static_shapes() const {
    return strategy_.layout().experimental_require_static_shapes;
  }

  /// The restored state of variables that are not made yet.
  [[nodiscard]] deferred_restore& deferred() { return deferred_; }

private:
  strategy& strategy_;
  deferred_restore deferred_;
};

} // namespace troupe
