// SPDX-License-Identifier: Apache-2.0
// The element types of tensors.
#pragma once

#include <bit>
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
[[nodiscard]] constexpr float16 to_float16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  // Exponent from bias 127 to bias 15; 13 fraction bits go, half of their unit (less one if the
  // last kept bit is even) carries into what stays, up to infinity.
  uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Below 2^-14 the unit is 2^-24, which is also the unit of the floats in [0.5, 1): adding 0.5
  // lets the float addition round.
  uint32_t tiny = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  uint32_t result = magnitude < 0x38800000 ? tiny : normal;
  result = magnitude >= 0x47800000 ? 0x7c00 : result; // 65536 and up
  result = magnitude > 0x7f800000 ? 0x7e00 : result;
  return {static_cast<uint16_t>(sign | result)};
}

/// Nearest bfloat16, ties to even; NaN stays NaN.
[[nodiscard]] constexpr bfloat16 to_bfloat16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  uint32_t quiet_nan = (bits >> 16 & 0x8000) | 0x7fc0;
  return {static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded)};
}

/// Exact.
[[nodiscard]] constexpr float to_float(float16 value) {
  uint32_t sign = (value.bits & 0x8000u) << 16;
  uint32_t magnitude = value.bits & 0x7fffu;
  uint32_t normal = (magnitude << 13) + (112u << 23);
  uint32_t special = (magnitude << 13) + (224u << 23); // infinity and NaN: exponent 31 becomes 255
  auto tiny
    = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  uint32_t result = magnitude < 0x400 ? tiny : normal;
  result = magnitude >= 0x7c00 ? special : result;
  return std::bit_cast<float>(sign | result);
}

/// Exact.
[[nodiscard]] constexpr float to_float(bfloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

} // namespace troupe
