// SPDX-License-Identifier: Apache-2.0
// The edit distance of two names, row by row.
#include "tools/options/nearest_name.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace troupe {

size_t edit_distance(std::string_view a, std::string_view b) {
  // Row i holds the distances of the first i letters of a to each beginning of b.
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string_view nearest_name(std::string_view unknown, std::span<const std::string_view> names) {
  const auto nearest = std::ranges::min_element(
    names, {}, [&](std::string_view name) { return edit_distance(unknown, name); });
  return nearest == names.end() ? std::string_view{} : *nearest;
}

} // namespace troupe
