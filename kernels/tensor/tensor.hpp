// SPDX-License-Identifier: Apache-2.0
// An n-dimensional array: extents, element type and a share in the memory that holds it.
#pragma once

#include "kernels/tensor/buffer.hpp"
#include "kernels/tensor/dtype.hpp"
#include "kernels/tensor/shape.hpp"
#include "messages/errors/assert.hpp"

#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Distances in elements between neighbours in each dimension, for elements row by row.
/// Errors: throws `failure` with invalid_argument for a negative extent, limit_exceeded for more
/// elements than an int64 counts.
[[nodiscard]] std::vector<int64_t> row_major_strides(const shape& extents);

/// An n-dimensional array with shared storage: a copy of a tensor is another handle to the same
/// elements, a view is a handle with other extents. Elements that came with a message are
/// read-only.
///
/// Thread: handles may be copied and read from any thread; a writer must be the only one to look.
/// Errors: a member that meets a dtype, shape or device which it does not take throws `failure`,
/// and says what the tensor is.
class tensor {
public:
  /// No elements, shape [0], f32. A tensor that was moved from is the same.
  tensor() = default;

  tensor(const tensor&) = default;
  tensor& operator=(const tensor&) = default;

  tensor(tensor&& other) noexcept
    : data_(other.data_), type_(other.type_), read_only_(other.read_only_), device_(other.device_),
      extents_(std::move(other.extents_)), strides_(std::move(other.strides_)),
      owner_(std::move(other.owner_)) {
    other.reset_plain_members();
  }

  tensor& operator=(tensor&& other) noexcept {
    if (this == &other) return *this;
    data_ = other.data_;
    type_ = other.type_;
    read_only_ = other.read_only_;
    device_ = other.device_;
    other.reset_plain_members();
    extents_ = std::move(other.extents_);
    strides_ = std::move(other.strides_);
    owner_ = std::move(other.owner_);
    return *this;
  }

  /// Uninitialised elements from `cpu_pool()`, row-major.
  /// Errors: throws `failure` with invalid_argument for a negative extent, limit_exceeded for more
  /// bytes than an int64 counts; std::bad_alloc, which names the tensor, if there is no memory.
  tensor(dtype type, shape extents);

  /// Elements that another object owns; `owner` keeps them alive.
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

  [[nodiscard]] const shape& extents() const { return is_nothing() ? no_extents() : extents_; }

  /// In elements.
  [[nodiscard]] const std::vector<int64_t>& strides() const {
    return is_nothing() ? no_strides() : strides_;
  }

  [[nodiscard]] troupe::device device() const { return device_; }

  [[nodiscard]] size_t rank() const { return extents().rank(); }

  [[nodiscard]] size_t element_count() const {
    return static_cast<size_t>(extents().element_count());
  }

  [[nodiscard]] size_t bytes() const { return element_count() * element_bytes(type_); }

  [[nodiscard]] bool read_only() const { return read_only_; }

  /// Row-major without gaps.
  [[nodiscard]] bool is_contiguous() const;

  /// True if no other handle, view or message shares the elements, so that writing them is unseen.
  [[nodiscard]] bool is_unique() const;

  /// First element.
  [[nodiscard]] const void* data() const { return data_; }

  /// Errors: throws `failure` with failed_precondition if the elements are read-only.
  [[nodiscard]] void* mutable_data() {
    if (read_only_) [[unlikely]]
      throw_read_only();
    return data_;
  }

  /// The object that keeps the elements alive, for messages that refer to them.
  [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }

  /// All elements in row-major order.
  /// @param where Where the caller expects them to lie: only code of a device may look there.
  /// Errors: throws `failure` with type_mismatch unless `dtype_of<T> == type()`, and with
  /// failed_precondition if the elements lie elsewhere or do not lie row by row.
  template <class T>
  [[nodiscard]] std::span<const T> values(troupe::device where = {}) const {
    check_access(dtype_of<T>, where);
    return {static_cast<const T*>(data_), element_count()};
  }

  /// Like `values`, for writing.
  /// Errors: as `values`; failed_precondition, too, if the elements are read-only.
  template <class T>
  [[nodiscard]] std::span<T> mutable_values(troupe::device where = {}) {
    check_access(dtype_of<T>, where);
    return {static_cast<T*>(mutable_data()), element_count()};
  }

  /// Errors: throws `failure` with type_mismatch unless `requested == type()`, for access to single
  /// elements by another way than `values`.
  void check_type(dtype requested) const {
    if (requested != type_) [[unlikely]]
      throw_no_access(requested, device_);
  }

  /// Errors: throws `failure` with failed_precondition if the elements lie on a device, for code of
  /// the host that reads them by another way than `values`.
  void check_on_host() const;

  /// The same elements through a handle that does not let them be written.
  [[nodiscard]] tensor as_read_only() const;

  /// The same elements in another shape.
  /// Errors: throws `failure` with invalid_argument unless the counts agree, and with
  /// failed_precondition if the elements do not lie row by row.
  [[nodiscard]] tensor reshape(shape extents) const;

  /// Rows [begin, end) of dimension 0, as a view.
  /// Errors: throws `failure` with out_of_range unless 0 <= begin <= end <= extents()[0].
  [[nodiscard]] tensor slice(int64_t begin, int64_t end) const;

  /// Dimensions 0 and 1 swapped, as a view.
  /// Errors: throws `failure` with invalid_argument unless `rank() == 2`.
  [[nodiscard]] tensor transpose() const;

  /// This tensor if it is contiguous, else a row-major copy. Errors: as `clone`, if it copies.
  [[nodiscard]] tensor contiguous() const;

  /// A row-major copy with memory of its own.
  /// Errors: throws `failure` with failed_precondition if the elements lie on another device.
  [[nodiscard]] tensor clone() const;

private:
  void check_access(dtype requested, troupe::device where) const {
    if (requested != type_ || where != device_ || !is_contiguous()) [[unlikely]]
      throw_no_access(requested, where);
  }

  [[noreturn]] void throw_no_access(dtype requested, troupe::device where) const;
  [[noreturn]] void throw_read_only() const;

  tensor(void* data, dtype type, shape extents, std::vector<int64_t> strides,
         std::shared_ptr<const void> owner);

  /// For moves, which copy these members whole: `std::exchange` would store `device_` in pieces,
  /// and the next read of all of it would wait for them.
  void reset_plain_members() {
    data_ = nullptr;
    type_ = dtype::f32;
    read_only_ = false;
    device_ = {};
  }

  /// A scalar has an element. Without extents of its own a tensor of nothing takes no memory, so
  /// that a move can leave one behind.
  [[nodiscard]] bool is_nothing() const { return data_ == nullptr && extents_.rank() == 0; }

  [[nodiscard]] static const shape& no_extents();
  [[nodiscard]] static const std::vector<int64_t>& no_strides();

  void* data_ = nullptr;
  dtype type_ = dtype::f32;
  bool read_only_ = false;
  troupe::device device_;
  shape extents_;
  std::vector<int64_t> strides_;
  std::shared_ptr<const void> owner_;
};

/// A row-major tensor of zeros. Errors: as the constructor of a tensor.
[[nodiscard]] tensor zeros(shape extents, dtype type = dtype::f32);

/// A row-major f32 tensor of the given values.
/// Errors: throws `failure` with invalid_argument unless the counts agree; as the constructor.
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
