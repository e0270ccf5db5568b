// SPDX-License-Identifier: Apache-2.0
// What each of several processes has to say, for all of them.
#pragma once

#include "strategies/contexts/strategy.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The texts of all processes that run replicas of a strategy, by rank; of a process that runs all,
/// its own. All of them have to make the call. For texts of some kilobytes: letters travel as
/// numbers, since no array has bytes.
/// @param what They are, the same in all processes: for errors, and to tell calls apart.
/// Errors: throws `failure`: wrong_context; as `cross_replica_context::exchanged`.
[[nodiscard]] std::vector<std::string> gather_texts(strategy& strategy, const std::string& what,
                                                    const std::string& own);

} // namespace troupe
