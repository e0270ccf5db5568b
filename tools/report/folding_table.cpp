// SPDX-License-Identifier: Apache-2.0
// Adding to a table, and folding it.
#include "tools/report/folding_table.hpp"

#include "messages/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

folding_table::cell sum_of(const folding_table::cell& one, const folding_table::cell& other) {
  return {one.sum + other.sum, one.count + other.count};
}

} // namespace

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
    fold_rows();
  while (!columns_.fits(column))
    fold_columns();
  rows_.reach(row);
  columns_.reach(column);
}

void folding_table::add(uint64_t row, uint64_t column, double value) {
  make_room(row, column);
  auto& place = cell_at(rows_.cell_of(row), columns_.cell_of(column));
  place.sum += value;
  ++place.count;
}

void folding_table::fold_rows() {
  const auto count = rows_.count();
  for (size_t row = 0; row < count; ++row)
    for (size_t column = 0; column < columns_.count(); ++column) {
      auto moved = std::exchange(cell_at(row, column), {});
      auto& place = cell_at(row / 2, column);
      place = row % 2 == 0 ? moved : sum_of(place, moved);
    }
  rows_.fold();
}

void folding_table::fold_columns() {
  const auto count = columns_.count();
  for (size_t row = 0; row < rows_.count(); ++row)
    for (size_t column = 0; column < count; ++column) {
      auto moved = std::exchange(cell_at(row, column), {});
      auto& place = cell_at(row, column / 2);
      place = column % 2 == 0 ? moved : sum_of(place, moved);
    }
  columns_.fold();
}

} // namespace troupe
