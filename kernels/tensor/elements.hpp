// SPDX-License-Identifier: Apache-2.0
// Arrays of elements of a type that is known at run time only.
#pragma once

#include "kernels/tensor/dtype.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <span>
#include <type_traits>

namespace troupe {

/// Elements to read, of a type known at run time: gradients of one variable may come as f32 from
/// one replica and as bf16 from another. Refers to memory that it does not own.
struct elements {
  const void* data = nullptr;
  dtype type = dtype::f32;
  size_t count = 0;

  elements() = default;

  elements(const void* first, dtype element_type, size_t element_count)
    : data(first), type(element_type), count(element_count) {}

  template <class T, size_t extent>
  elements(std::span<T, extent> values)
    : data(values.data()), type(dtype_of<std::remove_const_t<T>>), count(values.size()) {}

  /// @pre The tensor is contiguous.
  explicit elements(const tensor& from)
    : data(from.data()), type(from.type()), count(from.element_count()) {
    TROUPE_ASSERT(from.is_contiguous(), to_string(from.extents()));
  }

  /// @pre `dtype_of<T> == type`.
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    TROUPE_ASSERT(dtype_of<T> == type, to_string(type));
    return {static_cast<const T*>(data), count};
  }
};

/// Like `elements`, for writing.
struct mutable_elements {
  void* data = nullptr;
  dtype type = dtype::f32;
  size_t count = 0;

  mutable_elements() = default;

  template <class T, size_t extent>
  mutable_elements(std::span<T, extent> values)
    : data(values.data()), type(dtype_of<T>), count(values.size()) {}

  /// @pre The tensor is contiguous and not read-only.
  explicit mutable_elements(tensor& from)
    : data(from.mutable_data()), type(from.type()), count(from.element_count()) {
    TROUPE_ASSERT(from.is_contiguous(), to_string(from.extents()));
  }

  /// @pre `dtype_of<T> == type`.
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    TROUPE_ASSERT(dtype_of<T> == type, to_string(type));
    return {static_cast<T*>(data), count};
  }
};

/// Calls `visitor` with a value-initialised element of the given floating type:
/// `visit_floating(source.type, [&]<class T>(T) { read(source.as<T>()); })`.
/// @pre `is_floating(type)`.
template <class Visitor>
void visit_floating(dtype type, const Visitor& visitor) {
  TROUPE_ASSERT(is_floating(type), to_string(type));
  switch (type) {
  case dtype::f32:
    return visitor(float{});
  case dtype::f64:
    return visitor(double{});
  case dtype::f16:
    return visitor(float16{});
  default:
    return visitor(bfloat16{});
  }
}

/// An element's value in float or double, the types in which arithmetic happens: exact, but for
/// double to float, which rounds to nearest.
template <class To, class From>
[[nodiscard]] constexpr To widen(From value) {
  if constexpr (sizeof(From) == 2)
    return static_cast<To>(to_float(value));
  else
    return static_cast<To>(value);
}

/// A value as an element of any floating type, rounded to nearest; from double to 16 bits by way of
/// float.
template <class To, class From>
[[nodiscard]] constexpr To narrow(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (std::is_same_v<To, float16>)
    return to_float16(widen<float>(value));
  else if constexpr (std::is_same_v<To, bfloat16>)
    return to_bfloat16(widen<float>(value));
  else
    return widen<To>(value);
}

} // namespace troupe
