// SPDX-License-Identifier: Apache-2.0
// An n-dimensional array: extents, element type and a share in the memory that holds it.
#pragma once

#include "kernels/buffer.hpp"
#include "kernels/dtype.hpp"
#include "kernels/shape.hpp"
#include "messages/assert.hpp"

#include <memory>
#include <span>
#include <variant>
#include <vector>

namespace troupe {

/// Distances in elements between neighbours in each dimension, for elements row by row.
[[nodiscard]] std::vector<int64_t> row_major_strides(const shape& extents);

/// An n-dimensional array with shared storage: a copy of a tensor is another handle to the same
/// elements, a view is a handle with other extents. Elements that came with a message are
/// read-only.
///
/// Thread: handles may be copied and read from any thread; who writes must be the only one to look.
class tensor {
public:
  /// No elements, shape [0], f32.
  tensor() = default;

  /// Uninitialised elements from `cpu_pool()`, row-major.
  tensor(dtype type, shape extents);

  /// Elements that somebody else owns; `owner` keeps them alive.
  /// @pre `data` is aligned for `type` and holds `extents.element_count()` row-major elements.
  [[nodiscard]] static tensor wrap(void* data, dtype type, shape extents,
                                   std::shared_ptr<const void> owner);

  /// Like `wrap`, for elements that must not be written.
  [[nodiscard]] static tensor wrap_read_only(const void* data, dtype type, shape extents,
                                             std::shared_ptr<const void> owner);

  /// Like `wrap`, for elements that do not lie row by row; `strides` counts elements.
  [[nodiscard]] static tensor wrap_strided(void* data, dtype type, shape extents,
                                           std::vector<int64_t> strides,
                                           std::shared_ptr<const void> owner);

  /// Like `wrap`, for elements in the memory of a device.
  [[nodiscard]] static tensor wrap_on(troupe::device where, void* data, dtype type, shape extents,
                                      std::shared_ptr<const void> owner);

  [[nodiscard]] dtype type() const { return type_; }

  [[nodiscard]] const shape& extents() const { return extents_; }

  [[nodiscard]] const std::vector<int64_t>& strides() const { return strides_; } ///< In elements.

  [[nodiscard]] troupe::device device() const { return device_; }

  [[nodiscard]] size_t rank() const { return extents_.rank(); }

  [[nodiscard]] size_t element_count() const {
    return static_cast<size_t>(extents_.element_count());
  }

  [[nodiscard]] size_t bytes() const { return element_count() * element_bytes(type_); }

  [[nodiscard]] bool read_only() const { return read_only_; }

  /// Row-major without gaps.
  [[nodiscard]] bool is_contiguous() const;

  /// True if no other handle, view or message shares the elements, so that writing them is unseen.
  [[nodiscard]] bool is_unique() const;

  /// First element.
  [[nodiscard]] const void* data() const { return data_; }

  /// @pre The elements are not read-only.
  [[nodiscard]] void* mutable_data() {
    TROUPE_ASSERT(!read_only_);
    return data_;
  }

  /// What keeps the elements alive, for messages that refer to them.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }

  /// All elements in row-major order.
  /// @param where Where the caller expects them to lie: only code of a device may look there.
  /// @pre `dtype_of<T> == type()`, `where == device()`, and the tensor is contiguous.
  template <class T>
  [[nodiscard]] std::span<const T> values(troupe::device where = {}) const {
    TROUPE_ASSERT(where == device_, to_string(device_), to_string(where));
    TROUPE_ASSERT(dtype_of<T> == type_, to_string(type_));
    TROUPE_ASSERT(is_contiguous());
    return {static_cast<const T*>(data_), element_count()};
  }

  /// Like `values`, for writing. @pre The elements are not read-only.
  template <class T>
  [[nodiscard]] std::span<T> mutable_values(troupe::device where = {}) {
    TROUPE_ASSERT(where == device_, to_string(device_), to_string(where));
    TROUPE_ASSERT(dtype_of<T> == type_, to_string(type_));
    TROUPE_ASSERT(is_contiguous());
    return {static_cast<T*>(mutable_data()), element_count()};
  }

  /// The same elements through a handle that does not let them be written.
  [[nodiscard]] tensor as_read_only() const;

  /// The same elements in another shape. @pre Contiguous, and the counts agree.
  [[nodiscard]] tensor reshape(shape extents) const;

  /// Rows [begin, end) of dimension 0, as a view. @pre 0 <= begin <= end <= extents()[0].
  [[nodiscard]] tensor slice(int64_t begin, int64_t end) const;

  /// Dimensions 0 and 1 swapped, as a view. @pre rank() == 2.
  [[nodiscard]] tensor transpose() const;

  /// This tensor if it is contiguous, else a row-major copy. @pre As `clone`, if it copies.
  [[nodiscard]] tensor contiguous() const;

  /// A row-major copy with memory of its own. @pre The elements lie on the CPU's side.
  [[nodiscard]] tensor clone() const;

private:
  tensor(void* data, dtype type, shape extents, std::vector<int64_t> strides,
         std::shared_ptr<const void> owner);

  void* data_ = nullptr;
  dtype type_ = dtype::f32;
  bool read_only_ = false;
  troupe::device device_;
  shape extents_{0};
  std::vector<int64_t> strides_{1};
  std::shared_ptr<const void> owner_;
};

/// A row-major tensor of zeros.
[[nodiscard]] tensor zeros(shape extents, dtype type = dtype::f32);

/// A row-major f32 tensor of the given values. @pre The counts agree.
[[nodiscard]] tensor make_tensor(shape extents, std::span<const float> values);
[[nodiscard]] tensor make_tensor(shape extents, std::initializer_list<float> values);

/// Some rows of a larger, mostly zero array: row i of `values` belongs to row `indices[i]`.
/// Indices may repeat; repeated rows add up. The gradient of an embedding is one.
/// Shape: indices [rows] i64; values [rows, ...]; dense_extents [table rows, ...].
struct indexed_slices {
  tensor indices;
  tensor values;
  shape dense_extents;
};

/// The gradient of a loss by one variable: dense in the variable's shape, or some of its rows.
using gradient = std::variant<tensor, indexed_slices>;

} // namespace troupe
