// SPDX-License-Identifier: Apache-2.0
// Finds the batch that a row lies in, without reading a batch.
#pragma once

#include "strategies/data/dataset.hpp"

#include <cstdint>
#include <optional>

namespace troupe {

/// Code that cuts batches anew has to know in which of them row 1000 lies. If all have n rows, a
/// division tells. But the last of a pass may be smaller, and stages behind (`shuffle`, `repeat`,
/// `skip`) put it anywhere: so the same stages are made again after numbers, the sizes of the
/// batches, and asked for these instead.
/// Cost: none if all batches are full; else, for a jump, 0.1 us for each batch before that place in
/// its pass, 0.3 us behind a shuffle.
class batch_rows {
public:
  /// Errors: throws `failure`, `invalid_argument`, if the size of the batches is not known, and if
  /// a shuffle decides whether a smaller batch is among them at all.
  explicit batch_rows(const dataset& batches);

  /// Rows of all batches of a pass, or `dataset::infinite`.
  [[nodiscard]] uint64_t total() const { return total_; }

private:
  friend class row_finder;

  uint64_t total_;
  uint64_t batch_size_;
  std::optional<dataset> sizes_; ///< How many rows each batch has, unless all are full.
  uint64_t period_rows_ = 0;     ///< After so many rows, and so many batches, sizes begin anew.
  uint64_t period_batches_ = 0;
};

/// Finds rows for one reader. Thread: one owner at a time.
class row_finder {
public:
  /// Where a row lies.
  struct place {
    uint64_t batch = 0;     ///< The number of the batch.
    uint64_t row_first = 0; ///< The number of its first row.
    uint64_t rows = 0;      ///< How many it has.
  };

  explicit row_finder(const batch_rows& rows);

  /// Where row number `row` of a pass lies. @pre row < total().
  [[nodiscard]] place find(uint64_t epoch, uint64_t row);

private:
  batch_rows rows_;
  element_reader sizes_;
  uint64_t epoch_ = 0;
  place here_; ///< The last one found.
};

} // namespace troupe
