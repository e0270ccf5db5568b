// SPDX-License-Identifier: Apache-2.0
// Optimizers on their way to the owners: from a rule to its name and numbers, and back.
#pragma once

#include "kernels/learning_rate.hpp"
#include "kernels/update_rules.hpp"
#include "messages/payload.hpp"

#include <string_view>

namespace troupe {

/// The name and every setting of a rule, and how its learning rate changes.
[[nodiscard]] optimizer_settings to_settings(const update_rule& rule,
                                             const learning_rate_schedule& schedule = {});

/// The rule of that name; settings that are not mentioned keep their defaults.
/// Errors: not_found for a name or a setting that there is not, listing those there are;
/// invalid_argument, as `validate`.
[[nodiscard]] expected<update_rule> to_rule(const optimizer_settings& optimizer);

/// How the learning rate changes; every optimizer can be told.
/// Errors: invalid_argument for a number of updates that is none.
[[nodiscard]] expected<learning_rate_schedule> to_schedule(const optimizer_settings& optimizer);

} // namespace troupe
