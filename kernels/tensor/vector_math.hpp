// SPDX-License-Identifier: Apache-2.0
// Elementary functions and sums in the form that a compiler turns into vector instructions.
#pragma once

#include "kernels/tensor/host_device.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace troupe::cpu::detail {

// The C library's expf and tanhf take one element at a time. These consist of additions,
// multiplications, both in one rounding, divisions and choices only: a plain loop over them becomes
// vector code, and they round alike on every machine.

/// e^x = 2^exponent (1 + rest), where rest is within +-0.42 and has few wrong bits where it is
/// small.
struct exp_parts {
  int32_t exponent;
  float rest;
};

/// @pre Nothing is done with the result where x is not within [-105, 90]; of NaN the rest is NaN.
[[nodiscard]] TROUPE_HOST_DEVICE inline exp_parts parts_of_exp(float x) {
  // x = n log 2 + r. Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  constexpr float round_to_integer = 12582912.0F;
  float shifted = std::fma(x, 1.44269504F, round_to_integer);
  float n = shifted - round_to_integer;
  // log 2 in two parts; the first has 9 bits, so that n times it is exact.
  float r = std::fma(n, 2.12194440e-4F, std::fma(n, -0.693359375F, x));
  // The Taylor series; |r| <= 0.347 leaves r^8 / 8! < 6e-9. Pairs of terms come first, because a
  // chain of all of them is longer than what a processor looks ahead. Source: Estrin 1960.
  float square = r * r;
  float last
    = std::fma(std::fma(r, 1.0F / 5040, 1.0F / 720), square, std::fma(r, 1.0F / 120, 1.0F / 24));
  float series = std::fma(last, square, std::fma(r, 1.0F / 6, 0.5F));
  return {static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - 0x4b400000U),
          std::fma(series, square, r)};
}

/// @pre -126 <= exponent <= 127, or nothing is done with the result.
[[nodiscard]] TROUPE_HOST_DEVICE inline float power_of_2(int32_t exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

/// e to the power x; within 2 units in the last place, exact at infinities, NaN stays NaN.
[[nodiscard]] TROUPE_HOST_DEVICE inline float exp(float x) {
  auto [exponent, rest] = parts_of_exp(x);
  // 2^n in two factors, because n runs from -151 (a denormal result) to 129 (infinity).
  int32_t half = exponent >> 1;
  float result = (rest + 1.0F) * power_of_2(half) * power_of_2(exponent - half);
  // Beyond these bounds n does not fit. NaN fails both comparisons, and has come through the above.
  result = x > 89.5F ? std::numeric_limits<float>::infinity() : result;
  return x < -105.0F ? 0.0F : result;
}

[[nodiscard]] TROUPE_HOST_DEVICE inline double exp(double x) {
  return std::exp(x);
}

/// Hyperbolic tangent; within 3 units in the last place, exactly +-1 from |x| = 10 on.
[[nodiscard]] TROUPE_HOST_DEVICE inline float tanh(float x) {
  float size = std::abs(x);
  auto [exponent, rest] = parts_of_exp(2.0F * (size > 10.0F ? 10.0F : size));
  float power = power_of_2(exponent);
  float less_one = std::fma(power, rest, power - 1.0F); // e^2|x| - 1
  return std::copysign(less_one / (less_one + 2.0F), x);
}

[[nodiscard]] TROUPE_HOST_DEVICE inline double tanh(double x) {
  return std::tanh(x);
}

/// Sums keep this many partial sums, so that they fill vector registers; the order is fixed by it.
inline constexpr size_t lanes = 16;

/// Combines f(0), f(1), ..., f(count - 1) by `join`, lane by lane: element i joins lane i mod 16,
/// then lane l joins lane l + 8, then 4, 2 and 1.
template <class T, class Join, class Function>
[[nodiscard]] T combine_lanes(size_t count, T start, Join join, Function f) {
  std::array<T, lanes> partial;
  partial.fill(start);
  size_t whole = count - count % lanes;
  for (size_t i = 0; i < whole; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      partial[lane] = join(partial[lane], f(i + lane));
  for (size_t i = whole; i < count; ++i)
    partial[i - whole] = join(partial[i - whole], f(i));
  for (size_t width = lanes / 2; width > 0; width /= 2)
    for (size_t lane = 0; lane < width; ++lane)
      partial[lane] = join(partial[lane], partial[lane + width]);
  return partial[0];
}

/// f(0) + f(1) + ... + f(count - 1) in the order of `combine_lanes`.
template <class T, class Function>
[[nodiscard]] T sum_lanes(size_t count, Function f) {
  return combine_lanes(
    count, T{0}, [](T a, T b) { return a + b; }, f);
}

/// The bits of a number as an integer that is larger where the number is, and back. The compiler
/// has vectors for the larger of two integers, but not of two numbers that may be NaN.
template <class Integer>
[[nodiscard]] constexpr Integer ordered_bits(Integer bits) {
  return bits ^ ((bits >> (8 * sizeof(Integer) - 1)) & std::numeric_limits<Integer>::max());
}

/// The largest of the values; -infinity for none. Whether a NaN among them shows is left open.
template <class T>
[[nodiscard]] T max_lanes(std::span<const T> values) {
  using integer = std::conditional_t<sizeof(T) == sizeof(int32_t), int32_t, int64_t>;
  auto ordered = [](T value) { return ordered_bits(std::bit_cast<integer>(value)); };
  auto largest = combine_lanes(
    values.size(), ordered(-std::numeric_limits<T>::infinity()),
    [](integer a, integer b) { return a > b ? a : b; },
    [&](size_t i) { return ordered(values[i]); });
  return std::bit_cast<T>(ordered_bits(largest));
}

} // namespace troupe::cpu::detail
