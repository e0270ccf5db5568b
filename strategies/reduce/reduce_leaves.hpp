// SPDX-License-Identifier: Apache-2.0
// Reducing the values of replicas, leaf by leaf.
#pragma once

#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/reduce/process_exchange.hpp"
#include "strategies/values/leaves.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// What values are reduced over.
struct reduce_scope {
  /// The dimensions of each replica's value that are reduced first; none: it is taken as a whole.
  std::optional<std::vector<int64_t>> axes{};
  process_exchange* exchange = nullptr; ///< With other processes; null if there is none.
  uint32_t replicas = 1;                ///< Of all processes.
};

/// Whether a value for all devices is one for all replicas, not just that of the only replica that
/// is here. @param group The processes that run replicas; null: this one runs all.
[[nodiscard]] bool is_one_for_all(size_t devices, const process_group* group);

/// One leaf for each group. Arrays: element by element; with axes, over those first, and a mean
/// divides by the number of elements that there are in all: f64 for integers. Rows: behind each
/// other. Sums of integers wrap around; their mean is refused. A value that is the same for all
/// replicas is its own mean; its sum would count it several times and is refused, but for 0, and
/// where there is one replica.
/// @returns What gives the leaves, once the exchange is settled.
/// Errors: throws `failure` as `reduce_components`; invalid_argument for an axis that a value has
/// not, and for what is refused.
[[nodiscard]] pending<std::vector<leaf>>
reduce_leaves(reduce_op op, const std::vector<leaf_group>& groups, const reduce_scope& over);

} // namespace troupe
