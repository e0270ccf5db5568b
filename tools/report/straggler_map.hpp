// SPDX-License-Identifier: Apache-2.0
// Which replica was slow when.
#pragma once

#include "actors/recording/records.hpp"
#include "tools/report/folding_table.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A straggler is slow beside the others, so the slow-down of a gradient is the time that it took,
/// over the median of its step's gradients. Late ones count; cancelled ones, which have no time, do
/// not. The map has the mean slow-down of each replica over stretches of steps. A row of several
/// replicas has that of the slowest, which would vanish in a mean. Thread: one owner at a time.
class straggler_map {
public:
  static constexpr size_t rows_max = 128;
  static constexpr size_t columns_max = 384;

  /// Adds a step. @param index Counts the steps, from 0.
  void add(uint64_t index, const step_record& step);

  /// The map so far; a cell's value is its `sum` over its `count`.
  [[nodiscard]] folding_table table() const;

  /// The mean slow-down of a replica over all steps; NaN if there was no gradient of it.
  [[nodiscard]] double mean_of(uint32_t replica) const;

private:
  using mean = folding_table::cell;

  void close_stretch(folding_table& into) const;

  folding_table table_{rows_max, columns_max};
  uint64_t first_index_ = 0;   ///< Index of the open stretch's first step.
  std::vector<mean> replicas_; ///< Over the stretch that is open.
  std::vector<mean> totals_;   ///< Over the stretches before it.
  std::vector<double> times_;  ///< Times of one step; a member, so that its memory is reused.
};

} // namespace troupe
