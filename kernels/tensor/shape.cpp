// SPDX-License-Identifier: Apache-2.0
// The bytes of arrays, and shapes as they are written.
#include "kernels/tensor/shape.hpp"

#include <limits>

namespace troupe {

std::optional<uint64_t> bytes_of_array(uint64_t element_bytes, std::span<const uint64_t> extents) {
  constexpr uint64_t bytes_max = std::numeric_limits<int64_t>::max();
  auto bytes = element_bytes;
  bool is_empty = false;
  for (auto extent : extents) {
    is_empty |= extent == 0;
    const auto factor = std::max<uint64_t>(extent, 1);
    if (factor > bytes_max / bytes) return {};
    bytes *= factor;
  }
  return is_empty ? 0 : bytes;
}

std::string to_string(const shape& value) {
  std::string text = "[";
  for (size_t dim = 0; dim < value.rank(); ++dim) {
    if (dim > 0) text += ", ";
    text += std::to_string(value[dim]);
  }
  return text + "]";
}

} // namespace troupe
