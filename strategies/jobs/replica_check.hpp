// SPDX-License-Identifier: Apache-2.0
// A check that processes, which update their copies of the variables alike, hold the same.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "strategies/contexts/strategy.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe {

/// Compares variables over the processes that run replicas of a strategy, by checksums of their
/// bytes; all of them have to make the call. Variables that are synchronised on read are left out:
/// every replica has a value of its own. Where one process runs all replicas, it does nothing.
/// @param variables The same in all processes. @param step Updates made, for errors.
/// Cost: one pass over each variable, and a collective of 8 bytes for each variable and process.
/// Errors: throws `failure`: failed_precondition, the same in all processes, naming the first
/// variable that is not the same everywhere and the processes where it differs; as
/// the collectives of the strategy's `reducer`.
void check_replicas(strategy& strategy, std::span<const variable> variables, uint64_t step);

/// The ranks with a checksum that is not that of most, or of the first where none is that of most.
[[nodiscard]] std::vector<size_t> ranks_that_differ(std::span<const int64_t> checksums);

} // namespace troupe
