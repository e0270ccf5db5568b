// SPDX-License-Identifier: Apache-2.0
// Makes the update plan that the options of `troupe train` describe.
#pragma once

#include "kernels/updates/update_plan.hpp"
#include "tools/train/train_options.hpp"

namespace troupe {

/// The optimizer with its settings, and the schedule of its learning rate over so many steps.
/// Errors: as `to_plan`.
[[nodiscard]] expected<update_plan> plan_of(const train_options& options, uint64_t steps);

} // namespace troupe
