// SPDX-License-Identifier: Apache-2.0
// Adds values to a table, and folds it.
#include "tools/report/folding_table.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

void folding_axis::reach(uint64_t number) {
  TROUPE_ASSERT(fits(number), number, width_, cells_max_);
  count_ = std::max(count_, cell_of(number) + 1);
}

void folding_axis::fold() {
  width_ *= 2;
  count_ = (count_ + 1) / 2;
}

void folding_table::make_room(uint64_t row, uint64_t column) {
  while (!rows_.fits(row))
    fold(rows_);
  while (!columns_.fits(column))
    fold(columns_);
  rows_.reach(row);
  columns_.reach(column);
}

void folding_table::add(uint64_t row, uint64_t column, double value) {
  make_room(row, column);
  cell_at(rows_.cell_of(row), columns_.cell_of(column)).add(value);
}

void folding_table::fold(folding_axis& axis) {
  const size_t row_divisor = &axis == &rows_ ? 2 : 1;
  const size_t column_divisor = &axis == &columns_ ? 2 : 1;
  for (size_t row = 0; row < rows_.count(); ++row)
    for (size_t column = 0; column < columns_.count(); ++column) {
      const auto moved = std::exchange(cell_at(row, column), {});
      cell_at(row / row_divisor, column / column_divisor) += moved;
    }
  axis.fold();
}

} // namespace troupe
