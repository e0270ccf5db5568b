// SPDX-License-Identifier: Apache-2.0
// Checks that options of `troupe train`, each valid alone, make sense together.
#pragma once

#include "messages/errors/errc.hpp"
#include "tools/options/job_checks.hpp"
#include "tools/train/train_options.hpp"

namespace troupe {

/// Fills in defaults that depend on other options: the length of the run, the learning rate, and
/// settings that suit a transformer, or images. Given both --steps and --epochs, it keeps the one
/// from the stronger source. Errors: `invalid_argument` if both come from the same source.
[[nodiscard]] expected<void> settle(train_options& options, const option_origins& origins);

/// Refuses options that have no meaning for what --learn chooses, but for those from a weaker
/// source, which it resets. Errors: `invalid_argument`; the line names the option and the choice.
[[nodiscard]] expected<void> fit_learned(train_options& options, option_origins& origins);

/// Refuses options that have no meaning for what --model chooses, but for those from a weaker
/// source, which it resets. Errors: `invalid_argument`; the line names the option and the model.
[[nodiscard]] expected<void> fit_model(train_options& options, option_origins& origins);

/// Checks that the warm-up leaves steps for training. @param steps Steps of the run, which with
/// --epochs depend on the data.
/// Errors: `invalid_argument`.
[[nodiscard]] expected<void> check_warm_up(const train_options& options,
                                           const option_origins& origins, uint64_t steps);

/// Checks the relations between options, those of the job first.
/// Errors: `invalid_argument`, with a line that says which option to change and to what.
[[nodiscard]] expected<void> check(const train_options& options, const option_origins& origins);

} // namespace troupe
