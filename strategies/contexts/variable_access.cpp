// SPDX-License-Identifier: Apache-2.0
// Aggregates the operands of replicas to one operand, and sends it to the owner of the variable.
#include "strategies/contexts/variable_access.hpp"

#include "messages/errors/throw_failure.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/gradient_values.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/reduce/input_arrays.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/reduce/reduce_leaves.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace troupe {

tensor value_of(expected<msg<wire::VariableSnapshot>> answer) {
  auto snapshot = value_or_throw(std::move(answer));
  return read_tensor(snapshot.reader().getValue(), snapshot.owner());
}

double exact_number(long double integer) {
  auto nearest = static_cast<double>(integer);
  if (nearest == integer) return nearest;
  throw_failure(errc::invalid_argument,
                "a variable cannot be changed by the number {:.0f}, which would become {:.0f}; "
                "give a tensor of i64",
                integer, nearest);
}

namespace {

// One and the same number or array from all replicas is not a value for each. A single operand is
// that of the only replica of this process.
bool are_one(const std::vector<variable_operand>& operands) {
  if (operands.size() == 1) return false;
  const auto& first = operands.front();
  return std::ranges::all_of(operands, [&](const variable_operand& other) {
    if (other.index() != first.index()) return false;
    if (const auto* number = std::get_if<double>(&other)) return *number == std::get<double>(first);
    if (const auto* dense = std::get_if<tensor>(&other))
      return is_same_object(*dense, std::get<tensor>(first));
    return false;
  });
}

bool is_number(const variable_operand& operand) {
  return std::holds_alternative<double>(operand);
}

// The numbers of the replicas of all processes.
task<std::vector<double>> numbers_everywhere(const reducer& reducer, std::string call_name,
                                             std::vector<variable_operand> numbers) {
  auto own = filled(dtype::f64, {static_cast<int64_t>(numbers.size())}, 0);
  for (size_t i = 0; i < numbers.size(); ++i)
    own.mutable_values<double>()[i] = std::get<double>(numbers[i]);
  auto gathering = reducer.gather_rows(std::move(call_name), std::vector<tensor>{std::move(own)});
  auto gathered = co_await gathering;
  auto all = gathered.front().values<double>();
  co_return std::vector<double>(all.begin(), all.end());
}

bool is_dense(const variable_operand& operand) {
  return std::holds_alternative<tensor>(operand);
}

leaf as_leaf(const variable_operand& operand) {
  if (const auto* number = std::get_if<double>(&operand)) return *number;
  if (const auto* rows = std::get_if<indexed_slices>(&operand)) return *rows;
  return std::get<tensor>(operand);
}

// One and the same value is its own mean; counted several times, only 0 stays the same.
void check_one_for_all(const variable& target, change operation, const variable_operand& value) {
  if (target.aggregation() == variable_aggregation::mean || is_zero(as_leaf(value))) return;
  throw_failure(errc::invalid_argument,
                "A non-DistributedValues value cannot be reduced with the given reduce op "
                "ReduceOp.SUM: all {} replicas call {} of variable '{}' with one and the same "
                "value; give each a tensor of its own, or choose another aggregation",
                target.owner_strategy().num_replicas_in_sync(), name_of_assign(operation),
                target.name());
}

variable_operand as_operand(const leaf& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* rows = std::get_if<indexed_slices>(&value)) return *rows;
  return std::get<tensor>(value);
}

bool has_rows(const variable_operand& operand) {
  return std::holds_alternative<indexed_slices>(operand)
         || std::holds_alternative<distributed_value<indexed_slices>>(operand);
}

// Integers hold what lies between their bounds, which doubles show as powers of 2.
void check_number(const variable& target, double number) {
  if (is_floating(target.type())) return;
  auto bound = target.type() == dtype::i32 ? 0x1p31 : 0x1p63;
  auto cut = std::trunc(number);
  if (cut >= -bound && cut < bound) return;
  throw_failure(errc::invalid_argument, "variable '{}' is {}, which cannot be {}", target.name(),
                to_string(target.type()), number);
}

// Whether operands are reduced, because they are not one value for all replicas. Whether processes
// ask each other depends on the kinds of their operands, never on values, which may differ between
// processes: all have to make the same collectives.
task<bool> are_to_reduce(const reducer& reducer, variable target, std::string call_name,
                         std::vector<variable_operand> operands) {
  auto mode = target.aggregation();
  if (mode == variable_aggregation::only_first_replica) co_return false;
  if (reducer.group() == nullptr) co_return !are_one(operands);
  if (!std::ranges::all_of(operands, is_number))
    co_return mode == variable_aggregation::mean || !are_one(operands);
  auto gathering = numbers_everywhere(reducer, std::move(call_name), std::move(operands));
  auto numbers = co_await gathering;
  auto is_first = [&](double number) { return number == numbers.front(); };
  if (std::ranges::all_of(numbers, is_first)) co_return false;
  for (auto number : numbers)
    check_number(target, number); // before the reduction, so that all processes refuse alike
  co_return true;
}

} // namespace

reduce_op to_reduce_op(variable_aggregation mode) {
  if (mode == variable_aggregation::sum) return reduce_op::sum;
  if (mode == variable_aggregation::mean) return reduce_op::mean;
  throw_failure(errc::invalid_argument,
                "Could not convert from `tf.VariableAggregation` {} to a reduction; SUM and MEAN "
                "are reductions",
                to_string(mode));
}

std::string_view to_string(variable_synchronization mode) {
  constexpr std::array<std::string_view, 4> names{"AUTO", "NONE", "ON_WRITE", "ON_READ"};
  return names[static_cast<size_t>(mode)];
}

std::string_view to_string(variable_aggregation mode) {
  constexpr std::array<std::string_view, 4> names{"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
  return names[static_cast<size_t>(mode)];
}

task<tensor> variable_access::change_array(variable target, change operation,
                                           variable_operand operand) {
  if (has_rows(operand))
    throw_failure(errc::type_mismatch, "{} of variable '{}' was given rows; scatter them by {}",
                  name_of_assign(operation), target.name(), name_of_scatter(operation));
  return apply(std::move(target), operation, std::move(operand));
}

task<tensor> variable_access::change_rows(variable target, change operation,
                                          variable_operand operand) {
  if (!has_rows(operand))
    throw_failure(errc::type_mismatch,
                  "{} of variable '{}' takes indexed_slices; {} takes arrays and numbers",
                  name_of_scatter(operation), target.name(), name_of_assign(operation));
  return apply(std::move(target), operation, std::move(operand));
}

void check_made_by(std::string_view call, const strategy& expected, const variable& target) {
  if (&target.owner_strategy() == &expected) return;
  throw_failure(
    errc::invalid_argument,
    "{} was called for variable '{}', which another strategy made; use a variable of this one",
    call, target.name());
}

void check_same_world(std::string_view call, world& world, const variable& variable) {
  const auto& owner = variable.owner();
  if (!owner || &owner.home_system() == &world.system()) return;
  throw_failure(errc::invalid_argument,
                "{} was called for variable '{}', which a strategy of another world made; use a "
                "variable of this one",
                call, variable.name());
}

gradient to_change(const variable& target, const variable_operand& operand) {
  if (const auto* number = std::get_if<double>(&operand)) {
    check_number(target, *number);
    return filled(target.type(), target.extents(), *number);
  }
  if (const auto* dense = std::get_if<tensor>(&operand)) {
    check_on_host(*dense);
    return *dense;
  }
  const auto& rows = std::get<indexed_slices>(operand);
  check_on_host(gradient{rows});
  return completed(rows, target.extents());
}

std::vector<tensor*> arrays_in(variable_operand& operand) {
  if (auto* dense = std::get_if<tensor>(&operand)) return {dense};
  if (auto* rows = std::get_if<indexed_slices>(&operand)) return {&rows->indices, &rows->values};
  return {};
}

tensor own_handle(const tensor& value) {
  if (!is_on_device(value)) {
    auto whole = std::make_shared<const tensor>(value.contiguous());
    return tensor::wrap_read_only(whole->data(), value.type(), value.extents(), whole);
  }
  check_row_major(value);
  auto owner = std::make_shared<const tensor>(value);
  return tensor::wrap_on(value.device(), const_cast<void*>(value.data()), value.type(),
                         value.extents(), std::move(owner))
    .as_read_only();
}

int32_t component_of(const variable& target, uint32_t replica) {
  // Where copies are kept apart, even a single one is not the variable as a whole.
  auto is_shared
    = target.copies() == 1 && target.synchronization() != variable_synchronization::on_read;
  // An evaluator is none of the replicas.
  auto is_beside = replica >= target.owner_strategy().num_replicas_in_sync();
  return is_shared || is_beside ? whole_variable : static_cast<int32_t>(replica);
}

task<tensor> read_copy(activity& activity, variable source, int32_t component) {
  check_same_world("read", activity.world(), source);
  auto reading
    = activity.request<msg<wire::VariableSnapshot>>(source.owner(), make_read_variable(component));
  co_return value_of(co_await reading);
}

task<std::vector<tensor>> read_copies(activity& activity, variable source) {
  check_same_world("read", activity.world(), source);
  std::vector<std::pair<variable_owner_actor, msg<wire::ReadVariable>>> requests;
  for (uint32_t i = 0; i < source.copies(); ++i)
    requests.emplace_back(source.owner(), make_read_variable(static_cast<int32_t>(i)));
  auto reading = activity.request_all<msg<wire::VariableSnapshot>>(std::move(requests));
  auto snapshots = co_await reading;
  std::vector<tensor> copies;
  for (auto& snapshot : snapshots)
    copies.push_back(value_of(std::move(snapshot)));
  co_return copies;
}

task<tensor> change_copy(activity& activity, variable target, int32_t component, change operation,
                         variable_operand operand) {
  auto bringing = bring_to_host(activity, target.owner_strategy().devices(), arrays_in(operand));
  co_await bringing;
  auto message
    = make_change_variable(static_cast<uint8_t>(operation), to_change(target, operand), component);
  auto changing = activity.request<msg<wire::VariableSnapshot>>(target.owner(), std::move(message));
  co_return value_of(co_await changing);
}

task<variable_operand> aggregate(const reducer& reducer, variable target, change operation,
                                 std::vector<variable_operand> operands) {
  auto mode = target.aggregation();
  reduction_call call{fmt::format("{} of {}", name_of_assign(operation), target.name())};
  auto comparing = are_to_reduce(reducer, target, call.name, operands);
  auto is_reduced = co_await comparing;
  if (!is_reduced || !std::ranges::all_of(operands, is_dense)) {
    std::vector<tensor*> arrays;
    for (auto& operand : operands)
      std::ranges::copy(arrays_in(operand), std::back_inserter(arrays));
    auto bringing = reducer.bring_to_host(std::move(arrays));
    co_await bringing;
  }
  if (mode == variable_aggregation::only_first_replica) {
    auto own = as_leaf(operands.front());
    auto sharing = reducer.broadcast(std::move(call), std::move(own));
    auto first = co_await sharing;
    co_return as_operand(first);
  }
  if (reducer.group() == nullptr && operands.size() == 1) co_return operands.front();
  if (!is_reduced) {
    check_one_for_all(target, operation, operands.front());
    co_return operands.front();
  }
  leaf_group group{.is_gradient = true};
  for (const auto& operand : operands)
    group.parts.push_back(is_dense(operand) ? as_leaf(operand)
                                            : troupe::as_leaf(to_change(target, operand)));
  call.op = to_reduce_op(mode);
  auto reducing = reducer.reduce(std::move(call), {group}, 1);
  auto reduced = co_await reducing;
  co_return as_operand(reduced.front().front());
}

} // namespace troupe
