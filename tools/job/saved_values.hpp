// SPDX-License-Identifier: Apache-2.0
// The variables of a program in a checkpoint.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "messages/errc.hpp"
#include "strategies/values/variable.hpp"

#include <span>
#include <vector>

namespace troupe {

/// The values that a snapshot has of some variables, in their order.
/// Errors: failed_precondition, naming the first variable that is not there, or in another form.
[[nodiscard]] expected<std::vector<tensor>> values_in(const job_snapshot& snapshot,
                                                      std::span<const variable> variables);

} // namespace troupe
