// SPDX-License-Identifier: Apache-2.0
// A table of bounded size, for runs of any length and with any number of replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace troupe {

/// Numbers from 0 on in a bounded number of cells: a cell stands for one number, then for two,
/// four, eight, as many as it takes.
class folding_axis {
public:
  /// @pre cells_max > 1.
  explicit folding_axis(size_t cells_max) : cells_max_(cells_max) {}

  /// The count of numbers that a cell stands for.
  [[nodiscard]] uint64_t width() const { return width_; }

  /// Cells up to that of the largest number so far.
  [[nodiscard]] size_t count() const { return count_; }

  [[nodiscard]] size_t cells_max() const { return cells_max_; }

  /// The cell of a number. @pre It fits.
  [[nodiscard]] size_t cell_of(uint64_t number) const { return number / width_; }

  [[nodiscard]] bool fits(uint64_t number) const { return number / width_ < cells_max_; }

  /// Extends the cells to that of a number. @pre It fits.
  void reach(uint64_t number);

  /// Joins each two cells.
  void fold();

private:
  size_t cells_max_;
  uint64_t width_ = 1;
  size_t count_ = 0;
};

/// Sums of values by row and column, in memory that depends on neither: both are folding axes.
/// Thread: one owner at a time.
class folding_table {
public:
  struct cell {
    double sum = 0;
    uint64_t count = 0; ///< Values in it.

    void add(double value) { *this += {value, 1}; }

    cell& operator+=(const cell& other) {
      sum += other.sum;
      count += other.count;
      return *this;
    }

    /// NaN if there is no value.
    [[nodiscard]] double mean() const {
      return count > 0 ? sum / static_cast<double>(count)
                       : std::numeric_limits<double>::quiet_NaN();
    }
  };

  folding_table(size_t rows_max, size_t columns_max)
    : rows_(rows_max), columns_(columns_max), cells_(rows_max * columns_max) {}

  /// Folds until there are cells for a row and a column, and for all before them.
  void make_room(uint64_t row, uint64_t column);

  /// Adds a value. Cost: constant, but for the rare folds.
  void add(uint64_t row, uint64_t column, double value);

  [[nodiscard]] const folding_axis& rows() const { return rows_; }

  [[nodiscard]] const folding_axis& columns() const { return columns_; }

  /// @pre `row` and `column` are cells of their axes.
  [[nodiscard]] const cell& at(size_t row, size_t column) const {
    return cells_[row * columns_.cells_max() + column];
  }

private:
  void fold(folding_axis& axis);

  cell& cell_at(size_t row, size_t column) { return cells_[row * columns_.cells_max() + column]; }

  folding_axis rows_;
  folding_axis columns_;
  std::vector<cell> cells_;
};

} // namespace troupe
