// SPDX-License-Identifier: Apache-2.0
// Reductions: k gradients to one, an array to its sum or norm.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/elements.hpp"
#include "kernels/tensor/gradient_sum.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

namespace detail {

/// Whether all exponent bits are set: infinity or NaN.
template <class T>
[[nodiscard]] constexpr bool is_non_finite(T value) {
  if constexpr (sizeof(T) == 8)
    return (std::bit_cast<uint64_t>(value) & 0x7ff0000000000000) == 0x7ff0000000000000;
  else
    return (std::bit_cast<uint32_t>(widen<float>(value)) & 0x7f800000) == 0x7f800000;
}

} // namespace detail

namespace reference {

/// out = the sum that `gradient` describes. T is f32 or f64.
/// Shape: out  [n]  may be the first source itself
/// Cost:  (k + 1) n elements moved
template <class T>
void reduce(const context&, const gradient_sum& gradient, std::span<T> out);

/// sum += source: what an accumulator without memory for k gradients does. T is f32 or f64.
/// Shape: source  [n]  as in `gradient_sum`
///        sum     [n]  disjoint from source
template <class T>
void accumulate(const context&, const elements& source, std::span<T> sum);

/// The sum of all elements, of any floating type, in double.
[[nodiscard]] double sum(const context&, const elements& values);

/// The sum of the squares of all elements, of any floating type, in double.
[[nodiscard]] double squared_norm(const context&, const elements& values);

/// The sum of the squares of what `gradient` describes, without memory for it. T is f32 or f64.
template <class T>
[[nodiscard]] double squared_norm(const context&, const gradient_sum& gradient);

/// The number of elements that are infinite or NaN; any floating type.
[[nodiscard]] size_t count_non_finite(const context&, const elements& values);

} // namespace reference

namespace cpu {

/// As the reference, bit for bit.
template <class T>
void reduce(const context&, const gradient_sum& gradient, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void accumulate(const context&, const elements& source, std::span<T> sum);

/// As the reference but for the order of additions, which depends on the number of elements alone.
[[nodiscard]] double sum(const context&, const elements& values);

/// As the reference but for the order of additions, which depends on the number of elements alone.
[[nodiscard]] double squared_norm(const context&, const elements& values);

/// As the reference but for the order of additions, which depends on the number of elements alone.
template <class T>
[[nodiscard]] double squared_norm(const context&, const gradient_sum& gradient);

/// As the reference.
[[nodiscard]] size_t count_non_finite(const context&, const elements& values);

} // namespace cpu

namespace cuda {

/// As the reference, bit for bit.
template <class T>
void reduce(const context&, const gradient_sum& gradient, std::span<T> out);

/// As the reference, bit for bit.
template <class T>
void accumulate(const context&, const elements& source, std::span<T> sum);

/// Waits for its result, which is that of the cpu twin bit for bit.
[[nodiscard]] double sum(const context&, const elements& values);

/// Waits for its result, which is that of the cpu twin bit for bit.
[[nodiscard]] double squared_norm(const context&, const elements& values);

/// number[0] = that of the cpu twin, bit for bit, on the device; waits for nothing.
/// Shape: number  [1]
template <class T>
void squared_norm(const context&, const gradient_sum& gradient, std::span<double> number);

/// A sum of gradients to be measured, and where the number goes: to memory of the device.
struct measured_sum {
  gradient_sum gradient;
  double* number;
};

/// As `squared_norm` of each gradient; small ones share launches.
template <class T>
void squared_norms(const context&, std::span<const measured_sum> sums);

/// As the reference; waits for its result.
[[nodiscard]] size_t count_non_finite(const context&, const elements& values);

/// number[0] = that of all arrays together, on the device; waits for nothing.
/// Shape: number  [1]
void count_non_finite(const context&, std::span<const elements> arrays, std::span<double> number);

} // namespace cuda

} // namespace troupe
