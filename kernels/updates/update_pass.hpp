// SPDX-License-Identifier: Apache-2.0
// One update of one variable: from gradients as they come to the right kernel.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/tensor.hpp"
#include "kernels/updates/update_plan.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// An array that is kept beside a variable.
struct variable_slot {
  std::string name; ///< "momentum", "m"; or that of a moving average.
  tensor values;    ///< As the variable: its dtype and extents.
};

/// A variable and all that updates leave beside it: a job that saves and restores this goes on bit
/// for bit. All else that an update depends on follows from the two numbers.
struct variable_state {
  tensor value;          ///< f32 or f64, contiguous; all arrays of a variable lie in one place.
  uint64_t version = 0;  ///< Updates that the value includes.
  std::string optimizer; ///< The one with these slots: "adam". Empty: none yet.
  std::vector<variable_slot> slots;
  uint64_t slots_since = 0; ///< The version at which the slots had their initial values.
  std::optional<variable_slot> average; ///< Its shadow, if there is a moving average.
};

/// All arrays of a variable: its value, its slots, its average.
[[nodiscard]] std::vector<tensor*> arrays_of(variable_state& variable);

/// Gradients of one step, and how they become one.
struct gradient_mean {
  std::span<const gradient> gradients; ///< In their order; at least one.
  uint32_t divisor = 0;                ///< Divisor of their sum; 0 = their number.
  double scale = 1;                    ///< Factor of the mean: a clip by the norm of all variables.
};

// The functions are written once for all contexts: cpu and cuda, which the streams of devices use,
// and reference, the oracle. A variable lies where the context computes; gradients of the host are
// copied there.

/// Makes a variable ready for the updates of a plan. Slots of the same optimizer go on; others
/// begin at their initial values. An average of the same name goes on; another begins at the
/// variable's value of this moment.
template <class Context>
void prepare(const Context& on, variable_state& state, const update_plan& plan);

/// Applies the gradients of one step as the plan says. All dense: one fused pass over gradients,
/// variable, slots and average. All sparse: only the rows that occur, unless the plan is for exact
/// updates, and each row's mean is over the gradients that hold it. Some of each: the sparse ones
/// are made dense first. A clip by norm reads the gradients once more, before.
///
/// A holder of the value or the average keeps the old version: the new one is written to fresh
/// memory, or where the old one lies if it has no other holder.
/// @pre The gradients fit the variable (`check_gradient`), which is `prepare`d for the plan.
template <class Context>
void update_variable(const Context& on, variable_state& state, const update_plan& plan,
                     const gradient_mean& mean);

/// The gradients of an update of a variable, to be measured before.
struct measured_mean {
  const variable_state& variable;
  gradient_mean mean;
};

/// The sum of the squares of each mean gradient, as an update would apply it: what a clip by the
/// norm of all variables adds up. A GPU is waited for once. Cost: reads the gradients once.
template <class Context>
[[nodiscard]] std::vector<double> squared_norms(const Context& on,
                                                std::span<const measured_mean> means);

/// Whether an update changes nothing but the rows that the gradients hold.
[[nodiscard]] bool updates_rows(const update_plan& plan, const gradient_mean& mean);

} // namespace troupe
