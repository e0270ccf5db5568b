// SPDX-License-Identifier: Apache-2.0
// The order of the rows of sparse gradients, settled before anything is computed.
#include "kernels/math/sparse.hpp"

#include "kernels/tensor/gradient_sum.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace troupe {

namespace {

// A sort by counting, 11 bits of the index at a time from the lowest: what was in order within
// equal bits stays so. The counters of one pass fit the innermost cache.
constexpr unsigned digit_bits = 11;

/// Sorts `from` by one digit of the index into `to`.
void sort_by_digit(std::span<const row_entry> from, unsigned shift, std::span<row_entry> to) {
  std::array<size_t, size_t{1} << digit_bits> next{};
  auto digit = [shift](const row_entry& entry) {
    return static_cast<size_t>(entry.index >> shift) & ((size_t{1} << digit_bits) - 1);
  };
  for (const auto& entry : from)
    ++next[digit(entry)];
  size_t sum = 0;
  for (auto& place : next)
    sum += std::exchange(place, sum);
  for (const auto& entry : from)
    to[next[digit(entry)]++] = entry;
}

/// Every row of every source, in order; returns the largest index.
int64_t list_rows(std::span<const row_source> sources, std::span<row_entry> entries) {
  int64_t largest = 0;
  size_t at = 0;
  for (uint32_t source = 0; source < sources.size(); ++source) {
    auto indices = sources[source].indices;
    TROUPE_ASSERT(indices.size() <= std::numeric_limits<uint32_t>::max(), indices.size());
    for (uint32_t row = 0; row < indices.size(); ++row) {
      TROUPE_ASSERT(indices[row] >= 0, indices[row]);
      largest = std::max(largest, indices[row]);
      entries[at++] = {indices[row], source, row};
    }
  }
  return largest;
}

} // namespace

row_order order_rows(std::span<const row_source> sources, std::span<row_entry> entries,
                     std::span<size_t> starts) {
  size_t count = row_count(sources);
  TROUPE_ASSERT(entries.size() == 2 * count, entries.size(), count);
  TROUPE_ASSERT(starts.size() == count + 1, starts.size(), count);
  auto sorted = entries.first(count), spare = entries.last(count);
  int64_t largest = list_rows(sources, sorted);
  for (unsigned shift = 0; shift < 63 && largest >> shift != 0; shift += digit_bits) {
    sort_by_digit(sorted, shift, spare);
    std::swap(sorted, spare);
  }
  size_t distinct = 0;
  for (size_t i = 0; i < count; ++i)
    if (i == 0 || sorted[i].index != sorted[i - 1].index) starts[distinct++] = i;
  starts[distinct] = count;
  return {sorted, starts.first(distinct + 1)};
}

size_t row_count(std::span<const row_source> sources) {
  size_t count = 0;
  for (const auto& source : sources)
    count += source.indices.size();
  return count;
}

size_t source_count(std::span<const row_entry> rows_of_one_index) {
  size_t count = 0;
  for (size_t i = 0; i < rows_of_one_index.size(); ++i)
    count += i == 0 || rows_of_one_index[i].source != rows_of_one_index[i - 1].source ? 1 : 0;
  return count;
}

template <class T>
void check(const sparse_sum& gradient) {
  TROUPE_ASSERT(gradient.width > 0);
  TROUPE_ASSERT(gradient.order.entries.size() == row_count(gradient.sources));
  for (const auto& source : gradient.sources) {
    TROUPE_ASSERT(source.values.count == source.indices.size() * gradient.width,
                  source.values.count, source.indices.size(), gradient.width);
    TROUPE_ASSERT(widens_to(source.values.type, dtype_of<T>), to_string(source.values.type));
  }
}

template <class T>
void check(const sparse_sum& gradient, size_t table_elements) {
  check<T>(gradient);
  TROUPE_ASSERT(table_elements % gradient.width == 0, table_elements, gradient.width);
  if (gradient.order.entries.empty()) return;
  auto table_rows = static_cast<int64_t>(table_elements / gradient.width);
  TROUPE_ASSERT(gradient.order.entries.front().index >= 0, gradient.order.entries.front().index);
  TROUPE_ASSERT(gradient.order.entries.back().index < table_rows,
                gradient.order.entries.back().index, table_rows);
}

template void check<float>(const sparse_sum&);
template void check<double>(const sparse_sum&);
template void check<float>(const sparse_sum&, size_t);
template void check<double>(const sparse_sum&, size_t);

} // namespace troupe
