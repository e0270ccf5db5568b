// SPDX-License-Identifier: Apache-2.0
// A table in shards: variables with an owner each, which are read and changed as one.
#pragma once

#include "strategies/contexts/computed_gradients.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/values/partitioner.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A table may be larger than what one parameter server holds, or should send. Its shards are
/// variables that follow each other along axis 0, in order; row numbers count through all of them.
/// Each shard has an owner of its own, so a read or a change of several shards is not atomic.
///
/// A cheap value. Thread: any.
/// Source: TensorFlow, `ShardedVariable`.
class sharded_variable {
public:
  /// The variables as one.
  /// Errors: throws `failure` with invalid_argument for no variables, of several strategies,
  /// dtypes, or shapes that differ elsewhere than in axis 0; for shards that `make` has made,
  /// unless they are all those of one table, in order.
  explicit sharded_variable(std::vector<variable> shards);

  /// Makes the shards that a partitioner wants: "table/part_0", "table/part_1"; just "table" if it
  /// wants one, or there is none. All processes make them, as they make all variables. If a
  /// checkpoint was restored before, each shard begins with its rows of the array that is saved
  /// there under the table's name. Errors: throws `failure`: as `strategy::make_variable`;
  /// invalid_argument if the partitioner wants none, cuts along another axis, or makes more shards
  /// than there are rows.
  [[nodiscard]] static sharded_variable make(strategy& strategy, const std::string& name,
                                             const tensor& initial, const partitioner& partition,
                                             const variable_options& options = {});

  // A move copies, so that a handle that was moved from still means the same.
  sharded_variable(const sharded_variable&) = default;
  sharded_variable& operator=(const sharded_variable&) = default;

  [[nodiscard]] std::span<const variable> shards() const { return shards_; }

  /// The name of the first shard, without "/part_0".
  [[nodiscard]] std::string name() const;

  /// The first row of each shard, and the number of rows. Shape: [shards + 1]
  [[nodiscard]] const std::vector<int64_t>& offsets() const { return offsets_; }

  [[nodiscard]] dtype type() const { return shards_.front().type(); }

  [[nodiscard]] shape extents() const;

  // In a function that is given a context; errors are the context's, too.

  /// All rows. Cost: all shards travel.
  [[nodiscard]] task<tensor> read(variable_access& context) const;

  /// Some rows, in the order of `rows`, which may repeat. Cost: each shard with one of them
  /// travels. Shape: rows [count] i64; result [count, ...] Errors: throws `failure`: type_mismatch,
  /// out_of_range.
  [[nodiscard]] task<tensor> lookup(variable_access& context, tensor rows) const;

  /// One row; negative ones count from the end. Errors: throws `failure` with out_of_range.
  [[nodiscard]] task<tensor> row(variable_access& context, int64_t index) const;

  /// Rows as a Python slice takes them: bounds are cut, negative ones count from the end.
  /// Errors: throws `failure` with invalid_argument for a step of 0.
  [[nodiscard]] task<tensor> slice(variable_access& context, std::optional<int64_t> begin,
                                   std::optional<int64_t> end, int64_t step = 1) const;

  // The array is cut as the shards are. Errors: throws `failure` with invalid_argument for another
  // shape.

  [[nodiscard]] task<void> assign(variable_access& context, tensor value) const;
  [[nodiscard]] task<void> assign_add(variable_access& context, tensor delta) const;
  [[nodiscard]] task<void> assign_sub(variable_access& context, tensor delta) const;

  /// A gradient of the whole, cut for an optimizer: dense for each shard, or its rows, found by i32
  /// or i64, of which a shard may have none. Errors: throws `failure`: invalid_argument for another
  /// shape; type_mismatch for row numbers that are not a list of integers; out_of_range.
  [[nodiscard]] std::vector<gradient_and_variable> split(const gradient& gradient) const;

private:
  void check_whole() const;
  void check_like(const char* call, const shape& extents) const;
  [[noreturn]] void refuse_row(int64_t row) const;
  [[nodiscard]] size_t shard_of(int64_t row) const;
  [[nodiscard]] task<void> change_all(variable_access& context, change operation,
                                      tensor operand) const;

  std::vector<variable> shards_;
  std::vector<int64_t> offsets_;
};

/// The indices that a Python slice of `count` elements has.
/// Errors: throws `failure` with invalid_argument for a step of 0.
[[nodiscard]] std::vector<int64_t> slice_numbers(int64_t count, std::optional<int64_t> begin,
                                                 std::optional<int64_t> end, int64_t step);

} // namespace troupe
