// SPDX-License-Identifier: Apache-2.0
// A map of the replicas and steps at which gradients took long.
#pragma once

#include "actors/recording/records.hpp"
#include "tools/report/folding_table.hpp"

#include <cstdint>
#include <vector>

namespace troupe {

/// A straggler is slow beside the others, so the slow-down of a gradient is its time over the
/// median of its step's gradients. Late ones count; cancelled ones, which have no time, do not. The
/// map has the mean slow-down of each replica over stretches of steps. A row of several replicas
/// has that of the slowest, which would vanish in a mean. Thread: one owner at a time.
class straggler_map {
public:
  static constexpr size_t rows_max = 128;
  static constexpr size_t columns_max = 384;

  /// Gives each of the replicas a row. @param count Replicas of the job.
  void expect(uint32_t count);

  /// Adds a step. @param index Counts the steps, from 0.
  void add(uint64_t index, const step_record& step);

  /// The map so far; a cell's value is its mean. Empty, if no gradient took time.
  [[nodiscard]] folding_table table() const;

  /// The mean slow-down of a replica over all steps; NaN if there was no gradient of it.
  [[nodiscard]] double mean_of(uint32_t replica) const;

private:
  using replica_means = std::vector<folding_table::cell>;

  void add_open_stretch(folding_table& table) const;

  folding_table table_{rows_max, columns_max};
  uint64_t first_index_ = 0;  ///< Index of the open stretch's first step.
  replica_means open_;        ///< Over the open stretch.
  replica_means closed_;      ///< Over the stretches before it.
  bool has_times_ = false;    ///< Whether any gradient took time.
  std::vector<double> times_; ///< Times of one step; a member, so that its memory is reused.
};

} // namespace troupe
