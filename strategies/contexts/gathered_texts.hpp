// SPDX-License-Identifier: Apache-2.0
// Gathers one text from each process, for all of them.
#pragma once

#include "strategies/contexts/strategy.hpp"

#include <string>
#include <vector>

namespace troupe {

/// The texts of all processes that run replicas of a strategy, by rank; a process that runs all of
/// them gets its own text. All processes have to make the call. For texts of some kilobytes:
/// letters travel as numbers, since no array has bytes.
/// @param name A name for the texts, the same in all processes: for errors, and to tell calls
/// apart. @param own The text of this process.
/// Errors: throws `failure`: wrong_context; as `reducer`.
[[nodiscard]] std::vector<std::string> gather_texts(strategy& strategy, const std::string& name,
                                                    const std::string& own);

} // namespace troupe
