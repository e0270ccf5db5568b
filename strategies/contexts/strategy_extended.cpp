// SPDX-License-Identifier: Apache-2.0
// The extended calls of a strategy. Most wait for the same call of the cross-replica context.
#include "strategies/contexts/strategy_extended.hpp"

#include "messages/errors/throw_failure.hpp"

#include <algorithm>

namespace troupe {

namespace {

const strategy_layout& with_devices(const strategy_layout& layout, std::string_view call) {
  if (!layout.has_devices)
    throw_failure(
      errc::failed_precondition,
      "{} of the {} strategy was asked for, which has none; ask a strategy that has devices", call,
      layout.name);
  return layout;
}

} // namespace

distributed_value<tensor> strategy_extended::reduce_to(reduce_op op,
                                                       distributed_value<tensor> value,
                                                       destinations to,
                                                       communication_options options) {
  context_check::blocking("reduce_to", strategy_);
  return strategy_.cross_replica(
    [=](cross_replica_context& context) { return context.reduce_to(op, value, to, options); });
}

distributed_value<gradient> strategy_extended::reduce_to(reduce_op op,
                                                         distributed_value<gradient> value,
                                                         destinations to,
                                                         communication_options options) {
  context_check::blocking("reduce_to", strategy_);
  return strategy_.cross_replica(
    [=](cross_replica_context& context) { return context.reduce_to(op, value, to, options); });
}

std::vector<distributed_value<gradient>> strategy_extended::batch_reduce_to(
  reduce_op op, std::vector<std::pair<distributed_value<gradient>, destinations>> values,
  communication_options options) {
  context_check::blocking("batch_reduce_to", strategy_);
  return strategy_.cross_replica(
    [=](cross_replica_context& context) { return context.batch_reduce_to(op, values, options); });
}

distributed_value<tensor> strategy_extended::broadcast_to(tensor value, destinations to) {
  context_check::blocking("broadcast_to", strategy_);
  return strategy_.cross_replica(
    [=](cross_replica_context& context) { return context.broadcast_to(value, to); });
}

std::vector<std::string>
strategy_extended::non_slot_devices(std::span<const variable> variables) const {
  const auto& layout = strategy_.layout();
  if (layout.mirrors_variables || layout.parameter_devices == layout.worker_devices)
    return layout.worker_devices;
  if (variables.empty())
    throw_failure(errc::invalid_argument,
                  "non_slot_devices of no variables; give those that the state belongs to");
  return std::ranges::min_element(variables, {}, &variable::name)->devices();
}

context_guard strategy_extended::colocate_vars_with(const variable& beside) const {
  auto frame = context_stack::current().top();
  if (frame.owner != &strategy_)
    throw_failure(errc::wrong_context,
                  "colocate_vars_with was called in {}. Need to be inside \"with "
                  "strategy.scope()\"; enter the scope first",
                  describe(frame));
  check_made_by("colocate_vars_with", strategy_, beside);
  frame.beside = beside.index();
  frame.is_set = false;
  return context_guard{frame};
}

bool strategy_extended::variable_created_in_scope(const variable& variable) const {
  return &variable.owner_strategy() == &strategy_;
}

std::span<const std::string> strategy_extended::worker_devices() const {
  return with_devices(strategy_.layout(), "worker_devices").worker_devices;
}

std::span<const std::string> strategy_extended::parameter_devices() const {
  return with_devices(strategy_.layout(), "parameter_devices").parameter_devices;
}

} // namespace troupe
