// SPDX-License-Identifier: Apache-2.0
// Partitioners: functions that say into how many shards a variable is cut.
#pragma once

#include "kernels/tensor/tensor.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// Says how many parts an array is cut into along each axis. Shape: [rank]
/// A function that is to make shards cuts along axis 0 only.
/// Source: tf.distribute.experimental.partitioners.
using partitioner = std::function<std::vector<int64_t>(const shape& extents, dtype type)>;

/// Cuts into a fixed number of shards, or as many as there are rows, if those are fewer.
/// Errors: throws `failure` with invalid_argument for 0; when used, for a scalar.
[[nodiscard]] partitioner fixed_shards_partitioner(int64_t num_shards);

/// Cuts into as many shards as possible of at least `min_shard_bytes`, but at most `max_shards`.
/// Errors: throws `failure` with invalid_argument if either number is 0; when used, for a scalar.
[[nodiscard]] partitioner min_size_partitioner(int64_t min_shard_bytes = 256 << 10,
                                               int64_t max_shards = 1);

/// Cuts into as few shards as possible of at most `max_shard_bytes`, but at most `max_shards`. A
/// row is never cut.
/// Errors: throws `failure` with invalid_argument if either number is 0; when used, for a scalar.
[[nodiscard]] partitioner max_size_partitioner(int64_t max_shard_bytes,
                                               std::optional<int64_t> max_shards = std::nullopt);

/// The first rows of the shards of an array, and the number of rows behind them. The first
/// (rows mod shards) shards have a row more than the others. Shape: [shards + 1]
/// @pre At least 1 shard.
[[nodiscard]] std::vector<int64_t> shard_offsets(int64_t rows, int64_t shards);

} // namespace troupe
