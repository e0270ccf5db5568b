// SPDX-License-Identifier: Apache-2.0
// The calls that read and change variables; each context gives them a meaning of its own.
#pragma once

#include "actors/world/activity.hpp"
#include "actors/world/task.hpp"
#include "kernels/tensor/change.hpp"
#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/reduce/reducer.hpp"
#include "strategies/values/distributed_value.hpp"
#include "strategies/values/variable.hpp"

#include <string_view>
#include <type_traits>
#include <variant>

namespace troupe {

/// An integer of up to 64 bits, as the double that changes a variable.
/// Errors: throws `failure` with invalid_argument if no double has its value.
[[nodiscard]] double exact_number(long double integer);

/// The operand of an assignment or another change. A number stands for an array full of it, and is
/// converted to the variable's dtype. A variable stands for its value. Errors: as `exact_number`.
struct variable_operand : std::variant<double, tensor, distributed_value<tensor>, variable,
                                       indexed_slices, distributed_value<indexed_slices>> {
  using variant::variant;

  template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
  variable_operand(Integer number) : variant(exact_number(static_cast<long double>(number))) {}
};

/// The array in the memory of an owner's answer.
/// Errors: throws `failure` with the error of the answer.
[[nodiscard]] tensor value_of(expected<msg<wire::VariableSnapshot>> answer);

/// The calls on variables that all contexts have. Their effect depends on the context:
///
/// | context       | synchronised on write                     | synchronised on read           |
/// |---------------|-------------------------------------------|--------------------------------|
/// | replica       | all copies, by what all replicas come to; | its own copy                   |
/// |               | without aggregation its own copy alone    |                                |
/// | cross-replica | all copies, which must get one value      | all copies; a sum is shared out|
/// | update        | one copy                                  | one copy                       |
///
/// In a replica context an aggregated change is a merge_call: all replicas have to make it. In a
/// step of `train` with a chief, where no replica waits for others, each process is one worker: a
/// change is made at once, or refused (docs/strategies.md).
/// Every change answers with the new value of the copy that the context stands for.
/// Errors: all throw `failure`: type_mismatch if the operand is another dtype, rows where an array
/// is needed or the other way round, or one for each replica where all copies need the same
/// ("Expected value to be mirrored across replicas"); invalid_argument if shapes do not agree, or
/// the variable's aggregation does not allow the call; out_of_range for a scatter into a row that
/// the variable does not have; unimplemented for one into a variable that is synchronised on read.
class variable_access {
public:
  virtual ~variable_access() = default;

  /// The variable as it is now: an immutable view of its owner's memory.
  [[nodiscard]] virtual task<tensor> read(variable source) = 0;

  [[nodiscard]] task<tensor> assign(variable target, variable_operand value) {
    return change_array(std::move(target), change::assign, std::move(value));
  }

  [[nodiscard]] task<tensor> assign_add(variable target, variable_operand delta) {
    return change_array(std::move(target), change::add, std::move(delta));
  }

  [[nodiscard]] task<tensor> assign_sub(variable target, variable_operand delta) {
    return change_array(std::move(target), change::subtract, std::move(delta));
  }

  // Scatters change the rows that `rows` names, one after the other: a row that occurs twice is
  // changed twice. In a replica context the rows of all replicas are laid behind each other.

  [[nodiscard]] task<tensor> scatter_update(variable target, variable_operand rows) {
    return change_rows(std::move(target), change::assign, std::move(rows));
  }

  [[nodiscard]] task<tensor> scatter_add(variable target, variable_operand rows) {
    return change_rows(std::move(target), change::add, std::move(rows));
  }

  [[nodiscard]] task<tensor> scatter_sub(variable target, variable_operand rows) {
    return change_rows(std::move(target), change::subtract, std::move(rows));
  }

  [[nodiscard]] task<tensor> scatter_mul(variable target, variable_operand rows) {
    return change_rows(std::move(target), change::multiply, std::move(rows));
  }

  [[nodiscard]] task<tensor> scatter_div(variable target, variable_operand rows) {
    return change_rows(std::move(target), change::divide, std::move(rows));
  }

  [[nodiscard]] task<tensor> scatter_min(variable target, variable_operand rows) {
    return change_rows(std::move(target), change::minimum, std::move(rows));
  }

  [[nodiscard]] task<tensor> scatter_max(variable target, variable_operand rows) {
    return change_rows(std::move(target), change::maximum, std::move(rows));
  }

protected:
  variable_access() = default;
  variable_access(const variable_access&) = default;
  variable_access& operator=(const variable_access&) = default;

  [[nodiscard]] virtual task<tensor> apply(variable target, change operation,
                                           variable_operand operand)
    = 0;

private:
  [[nodiscard]] task<tensor> change_array(variable target, change operation,
                                          variable_operand operand);
  [[nodiscard]] task<tensor> change_rows(variable target, change operation,
                                         variable_operand operand);
};

/// Refuses a change, or a gradient, of a variable that another strategy made.
/// Errors: throws `failure` with invalid_argument; the line names call and variable.
void check_made_by(std::string_view call, const strategy& expected, const variable& target);

/// Refuses a variable of another world, whose actors this world cannot ask.
/// Errors: throws `failure` with invalid_argument; the line names call and variable.
void check_same_world(std::string_view call, world& world, const variable& variable);

/// A value for one replica alone, read-only. Each replica's read is a value of its own, and so is
/// its part of a distributed value, even while all of them are one array: no program may depend on
/// that.
[[nodiscard]] tensor own_handle(const tensor& value);

/// The index of a replica's own copy, or of an update's; `whole_variable` where all share it.
[[nodiscard]] int32_t component_of(const variable& target, uint32_t replica);

/// Asks a variable's owner for its value, or that of one copy, and waits.
/// Errors: throws `failure` as `check_same_world`, and as the owner answers.
[[nodiscard]] task<tensor> read_copy(activity& activity, variable source, int32_t component);

/// Asks a variable's owner for all copies that it has, and waits.
/// Errors: as `read_copy`.
[[nodiscard]] task<std::vector<tensor>> read_copies(activity& activity, variable source);

/// Has a variable's owner change one copy or all, and waits. @returns The new value.
/// @param operand Neither a distributed value nor a variable.
[[nodiscard]] task<tensor> change_copy(activity& activity, variable target, int32_t component,
                                       change operation, variable_operand operand);

/// The reduction that an aggregation stands for.
/// Errors: throws `failure` with invalid_argument for NONE and ONLY_FIRST_REPLICA.
[[nodiscard]] reduce_op to_reduce_op(variable_aggregation mode);

/// The arrays of an operand: none for a number. The arrays of distributed values and variables are
/// not among them.
[[nodiscard]] std::vector<tensor*> arrays_in(variable_operand& operand);

/// Aggregates the operands of all replicas for a variable. Numbers are one value if the numbers of
/// all processes are the same.
/// @param operands By replica; neither distributed nor variables.
/// @returns The operand for all; an array that devices have reduced lies on one of them.
/// Errors: throws `failure` as `reducer`; invalid_argument for one and the same value from all
/// replicas under SUM, which would be counted several times; 0 may be.
[[nodiscard]] task<variable_operand> aggregate(const reducer& reducer, variable target,
                                               change operation,
                                               std::vector<variable_operand> operands);

/// The operand as one array or some rows: a number becomes an array like the variable.
/// Errors: throws `failure` with invalid_argument for a number that the variable's dtype has not.
[[nodiscard]] gradient to_change(const variable& target, const variable_operand& operand);

} // namespace troupe
