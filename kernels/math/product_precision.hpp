// SPDX-License-Identifier: Apache-2.0
// The formats that matrix products may round their operands to.
#pragma once

#include "kernels/tensor/dtype.hpp"

#include <bit>
#include <cstdint>
#include <string_view>

namespace troupe {

/// The format that a product of f32 rounds its operands to, to nearest, ties to even, before it
/// multiplies them: processors have faster units for shorter operands. Operands in memory,
/// products, sums and the result stay f32. Products of f64 know `full` alone.
/// Source: Micikevicius et al., "Mixed precision training", 2018, section 3.3.
enum class product_precision : uint8_t {
  /// As they are.
  full,
  /// 8 bits of exponent and 10 of fraction: the range of f32, the fraction of f16.
  tf32,
  /// 8 bits of exponent and 7 of fraction: the range of f32.
  bf16,
  /// 5 bits of exponent and 10 of fraction. Magnitudes from 65,520 on become infinite, those up to
  /// 2^-25 become 0; gradients stay between the two by a `loss_scale`.
  f16,
};

/// "full", "tf32", "bf16" or "f16".
[[nodiscard]] constexpr std::string_view to_string(product_precision precision) {
  constexpr std::string_view names[] = {"full", "tf32", "bf16", "f16"};
  return names[static_cast<size_t>(precision)];
}

/// Whether products of this type have that precision.
[[nodiscard]] constexpr bool has_precision(dtype type, product_precision precision) {
  return type == dtype::f32 || precision == product_precision::full;
}

/// The shortest type that holds all operands of this precision.
[[nodiscard]] constexpr dtype operand_type(product_precision precision) {
  if (precision == product_precision::bf16) return dtype::bf16;
  return precision == product_precision::f16 ? dtype::f16 : dtype::f32;
}

/// The nearest number with 10 bits of fraction, ties to even; NaN stays NaN.
[[nodiscard]] constexpr float to_tf32(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
  uint32_t quiet_nan = (bits & 0x80000000) | 0x7fc00000;
  return std::bit_cast<float>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

/// An operand as a product of this precision takes it; of f64 as it is.
[[nodiscard]] constexpr float rounded(float value, product_precision precision) {
  switch (precision) {
  case product_precision::tf32:
    return to_tf32(value);
  case product_precision::bf16:
    return to_float(to_bfloat16(value));
  case product_precision::f16:
    return to_float(to_float16(value));
  default:
    return value;
  }
}

[[nodiscard]] constexpr double rounded(double value, product_precision) {
  return value;
}

} // namespace troupe
