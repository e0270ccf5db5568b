// SPDX-License-Identifier: Apache-2.0
// Whether options that are each fine by themselves make sense together.
#pragma once

#include "messages/errc.hpp"
#include "tools/options/option_origin.hpp"
#include "tools/train/train_options.hpp"

namespace troupe {

/// Fills in what follows from other options: the length of the run, the learning rate, and what
/// suits a transformer, or images.
/// Errors: `invalid_argument` if both --steps and --epochs were given at the same place; otherwise
/// the one from the stronger source holds.
[[nodiscard]] expected<void> settle(train_options& options, const option_origins& origins);

/// Refuses options that have no meaning under the strategy that was chosen; one that comes from a
/// weaker source than the strategy is forgotten instead. Where replicas meet, every update takes
/// the gradients of all; under `ssp` it takes one, unless something else was asked for.
/// Errors: `invalid_argument`; the line names the option and the strategy.
[[nodiscard]] expected<void> fit_strategy(train_options& options, option_origins& origins);

/// Refuses options that have no meaning for what is learnt; one that comes from a weaker source
/// than that choice is forgotten instead.
/// Errors: `invalid_argument`; the line names the option and what is learnt.
[[nodiscard]] expected<void> fit_learned(train_options& options, option_origins& origins);

/// Refuses options that have no meaning for the model that was chosen; one that comes from a weaker
/// source than the model is forgotten instead.
/// Errors: `invalid_argument`; the line names the option and the model.
[[nodiscard]] expected<void> fit_model(train_options& options, option_origins& origins);

/// Where the default number of replicas cannot be shared evenly by the workers of a cluster, each
/// has one, and an update waits for all but one, unless something else was asked for, replicas
/// meet, or the policy is `ssp`.
/// @param workers At least 1.
void fit(train_options& options, const option_origins& origins, uint64_t workers);

/// Checks the relations between options.
/// Errors: `invalid_argument`, with a line that says which option to change and to what.
[[nodiscard]] expected<void> check(const train_options& options, const option_origins& origins);

} // namespace troupe
