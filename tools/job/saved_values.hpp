// SPDX-License-Identifier: Apache-2.0
// Finds the values of a program's variables in a checkpoint.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "messages/errors/errc.hpp"
#include "strategies/values/variable.hpp"

#include <span>
#include <vector>

namespace troupe {

/// The values of some variables in a snapshot, in the order of `variables`.
/// Errors: failed_precondition, naming the first variable that is missing in the snapshot, or that
/// has another shape or element type there.
[[nodiscard]] expected<std::vector<tensor>> values_in(const job_snapshot& snapshot,
                                                      std::span<const variable> variables);

} // namespace troupe
