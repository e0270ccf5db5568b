// SPDX-License-Identifier: Apache-2.0
// The extents of a tensor, slowest-varying dimension first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The extents of a tensor, outermost first; rank 0 is a scalar of one element.
class shape {
public:
  shape() = default;

  shape(std::initializer_list<int64_t> dims) : dims_(dims) {}

  explicit shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  [[nodiscard]] size_t rank() const { return dims_.size(); }

  [[nodiscard]] int64_t operator[](size_t dim) const { return dims_[dim]; }

  [[nodiscard]] const std::vector<int64_t>& dims() const { return dims_; }

  /// Product of the extents; 1 for a scalar. @pre The product fits int64 (checked where shapes
  /// enter).
  [[nodiscard]] int64_t element_count() const {
    int64_t count = 1;
    for (auto dim : dims_)
      count *= dim;
    return count;
  }

  bool operator==(const shape&) const = default;

private:
  std::vector<int64_t> dims_;
};

/// Whether an array of these extents, each at least 0, has more than `most` elements. Their product
/// may be too large for any integer.
template <class Extents, class Extent>
[[nodiscard]] bool has_more_elements(const Extents& extents, Extent most) {
  if (std::ranges::find(extents, Extent{0}) != extents.end()) return false;
  for (auto extent : extents)
    most /= extent;
  return most == 0;
}

/// The bytes of an array of these extents; nothing if they, or the strides of an array without
/// elements, are beyond 63 bits. @pre `element_bytes > 0`
[[nodiscard]] std::optional<uint64_t> bytes_of_array(uint64_t element_bytes,
                                                     std::span<const uint64_t> extents);

/// "[3, 4]"; "[]" for a scalar.
[[nodiscard]] std::string to_string(const shape& value);

} // namespace troupe
