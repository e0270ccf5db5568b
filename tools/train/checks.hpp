// SPDX-License-Identifier: Apache-2.0
// Whether options that are each fine by themselves make sense together.
#pragma once

#include "messages/errc.hpp"
#include "tools/options/job_checks.hpp"
#include "tools/train/train_options.hpp"

namespace troupe {

/// Fills in what follows from other options: the length of the run, the learning rate, and what
/// suits a transformer, or images.
/// Errors: `invalid_argument` if both --steps and --epochs were given at the same place; otherwise
/// the one from the stronger source holds.
[[nodiscard]] expected<void> settle(train_options& options, const option_origins& origins);

/// Refuses options that have no meaning for what is learnt; one that comes from a weaker source
/// than that choice is forgotten instead.
/// Errors: `invalid_argument`; the line names the option and what is learnt.
[[nodiscard]] expected<void> fit_learned(train_options& options, option_origins& origins);

/// Refuses options that have no meaning for the model that was chosen; one that comes from a weaker
/// source than the model is forgotten instead.
/// Errors: `invalid_argument`; the line names the option and the model.
[[nodiscard]] expected<void> fit_model(train_options& options, option_origins& origins);

/// Checks that the warm-up leaves steps for training. @param steps Steps of the run; with --epochs,
/// its data tells them.
/// Errors: `invalid_argument`.
[[nodiscard]] expected<void> check_warm_up(const train_options& options,
                                           const option_origins& origins, uint64_t steps);

/// Checks the relations between options, those of the job first.
/// Errors: `invalid_argument`, with a line that says which option to change and to what.
[[nodiscard]] expected<void> check(const train_options& options, const option_origins& origins);

} // namespace troupe
