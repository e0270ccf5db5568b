// SPDX-License-Identifier: Apache-2.0
// Reduces the nested values of replicas, leaf by leaf.
#pragma once

#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/reduce/process_exchange.hpp"
#include "strategies/values/leaves.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// The dimensions, replicas and processes that values are reduced over.
struct reduce_scope {
  /// The dimensions of each replica's value that are reduced first; none: it is taken as a whole.
  std::optional<std::vector<int64_t>> axes{};
  process_exchange* exchange = nullptr; ///< With other processes; null if there is none.
  uint32_t replicas = 1;                ///< Replicas of all processes.
};

/// True for a number or an array that is nothing but one zero. @pre An array lies on the host.
[[nodiscard]] bool is_zero(const leaf& value);

/// Whether a value for all devices is one for all replicas, and not the value of the only replica
/// of this process. @param group The processes that run replicas; null: this one runs all.
[[nodiscard]] bool is_one_for_all(size_t devices, const process_group* group);

/// Reduces each group to one leaf. Arrays are reduced element by element; with axes, over those
/// first, and a mean divides by the total number of elements: f64 for integers. Rows are laid
/// behind each other. Sums of integers wrap around; their mean is refused. A value that is the same
/// for all replicas is its own mean. Its sum would count it several times, and is refused, but for
/// 0, and where there is one replica.
/// @returns A function that returns the leaves, once the exchange is settled.
/// Errors: throws `failure` as `reduce_components`; invalid_argument for an axis out of range, and
/// for refused values.
[[nodiscard]] pending<std::vector<leaf>>
reduce_leaves(reduce_op op, const std::vector<leaf_group>& groups, const reduce_scope& scope);

} // namespace troupe
