// SPDX-License-Identifier: Apache-2.0
// replicas.csv: the totals of a run with one line per replica.
#pragma once

#include "actors/recording/summary.hpp"
#include "messages/errors/errc.hpp"

#include <filesystem>

namespace troupe {

/// The ledger of a long run is too long for a spreadsheet or a plot; this has its sums.
///
/// | column          | unit    | meaning                                                     |
/// |-----------------|---------|-------------------------------------------------------------|
/// | replica         |         |                                                             |
/// | accepted        | 1       | gradients that an update used                               |
/// | stale           | 1       | gradients that came too late                                |
/// | cancelled       | 1       | gradients that it was told to give up                       |
/// | worst_staleness | steps   | the most that a gradient came too late                      |
/// | used_seconds    | s       | spent on the accepted gradients                             |
/// | wasted_seconds  | s       | spent on the others                                         |
/// | waiting_seconds | s       | spent waiting for tokens                                    |
/// | held_up_seconds | s       | time that others waited for it, in steps that it completed  |
///
/// Writes the file as a whole, in place of a former one.
/// Errors: `resource`.
[[nodiscard]] expected<void> write_replica_table(const std::filesystem::path& path,
                                                 const summary& run);

} // namespace troupe
