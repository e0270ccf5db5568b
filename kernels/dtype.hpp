// SPDX-License-Identifier: Apache-2.0
// The element types of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

/// Element type of a tensor. The values travel in messages (`DType` in `messages/tensor.capnp`).
enum class dtype : uint8_t { f32 = 0, f64 = 1, f16 = 2, bf16 = 3, i32 = 4, i64 = 5 };

/// Number of enumerators of `dtype`; a peer's value at or above it is malformed.
inline constexpr size_t dtype_count = 6;

/// IEEE 754 binary16 as stored: 1 sign, 5 exponent, 10 fraction bits. Arithmetic happens in float.
struct float16 {
  uint16_t bits = 0;
  bool operator==(const float16&) const = default;
};

/// The upper half of an IEEE 754 binary32. Arithmetic happens in float.
struct bfloat16 {
  uint16_t bits = 0;
  bool operator==(const bfloat16&) const = default;
};

/// Bytes of one element.
[[nodiscard]] constexpr size_t element_bytes(dtype type) {
  constexpr size_t bytes[dtype_count] = {4, 8, 2, 2, 4, 8};
  return bytes[static_cast<size_t>(type)];
}

/// "f32", "f64", "f16", "bf16", "i32" or "i64".
[[nodiscard]] constexpr std::string_view to_string(dtype type) {
  constexpr std::string_view names[dtype_count] = {"f32", "f64", "f16", "bf16", "i32", "i64"};
  return names[static_cast<size_t>(type)];
}

/// True for the types that gradients and means are defined on.
[[nodiscard]] constexpr bool is_floating(dtype type) {
  return type <= dtype::bf16;
}

/// The `dtype` of a C++ element type: `dtype_of<float> == dtype::f32`.
template <class T>
inline constexpr dtype dtype_of = T::has_no_dtype;
template <>
inline constexpr dtype dtype_of<float> = dtype::f32;
template <>
inline constexpr dtype dtype_of<double> = dtype::f64;
template <>
inline constexpr dtype dtype_of<float16> = dtype::f16;
template <>
inline constexpr dtype dtype_of<bfloat16> = dtype::bf16;
template <>
inline constexpr dtype dtype_of<int32_t> = dtype::i32;
template <>
inline constexpr dtype dtype_of<int64_t> = dtype::i64;

/// Nearest binary16, ties to even; overflow becomes infinity, NaN stays NaN.
[[nodiscard]] float16 to_float16(float value);

/// Nearest bfloat16, ties to even; NaN stays NaN.
[[nodiscard]] bfloat16 to_bfloat16(float value);

/// Exact.
[[nodiscard]] float to_float(float16 value);

/// Exact.
[[nodiscard]] float to_float(bfloat16 value);

} // namespace troupe
