// SPDX-License-Identifier: Apache-2.0
// Estimates for dynamic backups as arrays of a checkpoint, and back.
#pragma once

#include "actors/policies/backup_choice.hpp"
#include "messages/errors/errc.hpp"
#include "messages/payload.hpp"

#include <span>
#include <vector>

namespace troupe {

/// The arrays that hold estimates. Units: seconds, but for `steps`. NaN: there is no such time.
///
/// Shape: steps    [rows, 2]            i64, the stamp of a step, and when it began, nanoseconds
///        arrivals [rows, replicas, 3]  f64, time of arrival, an estimate of it, its lower bound
///        spreads  [count, 2]           f64, as `gradient_spread`
///        descent  [count, 3]           f64, as `descent_step`
[[nodiscard]] std::vector<named_payload> to_arrays(const backup_estimates& estimates);

/// The estimates in arrays, after a check of shapes, types and numbers. A checkpoint from before
/// there were estimates has no array; then they are empty.
/// Errors: malformed, naming the array that is missing or wrong.
[[nodiscard]] expected<backup_estimates>
read_backup_estimates(std::span<const named_payload> arrays);

} // namespace troupe
