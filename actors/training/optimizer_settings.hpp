// SPDX-License-Identifier: Apache-2.0
// Converts update plans to names and numbers, as messages to owners carry them, and back.
#pragma once

#include "kernels/updates/update_plan.hpp"
#include "messages/payload.hpp"

#include <string_view>
#include <vector>

namespace troupe {

/// The names and numbers of a plan's rule, schedule and average.
[[nodiscard]] optimizer_settings to_settings(const update_plan& plan);

/// The plan with these settings; settings that are not mentioned keep their defaults.
/// Errors: not_found for an unknown name or setting, listing the known ones;
/// invalid_argument, as `validate`.
[[nodiscard]] expected<update_plan> to_plan(const optimizer_settings& optimizer);

/// The names of the settings of an optimizer, with the settings that all optimizers have.
/// Errors: not_found for an unknown optimizer, listing the known ones.
[[nodiscard]] expected<std::vector<std::string_view>> setting_names(std::string_view optimizer);

} // namespace troupe
