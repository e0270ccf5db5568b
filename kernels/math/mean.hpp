// SPDX-License-Identifier: Apache-2.0
// The mean of an array, and its gradient.
#pragma once

#include "kernels/tensor/context.hpp"

#include <span>

namespace troupe {

namespace reference {

/// The arithmetic mean, added up in f64 from the first value to the last; NaN for no values.
template <class T>
[[nodiscard]] T mean(const context&, std::span<const T> values);

/// The gradient of `mean` by each of its values: output_gradient / values.
/// Shape: output_gradient  [1]       of the mean
///        gradient         [values]  aliases nothing
template <class T>
void mean_gradient(const context&, std::span<const T> output_gradient, std::span<T> gradient);

} // namespace reference

namespace cpu {

/// As the reference, in the order of `sum`.
template <class T>
[[nodiscard]] T mean(const context&, std::span<const T> values);

/// As the reference, bit for bit.
template <class T>
void mean_gradient(const context&, std::span<const T> output_gradient, std::span<T> gradient);

} // namespace cpu

namespace cuda {

/// As the cpu twin, bit for bit; waits for its result.
template <class T>
[[nodiscard]] T mean(const context&, std::span<const T> values);

/// out[0] = mean(values), without waiting.
template <class T>
void mean(const context&, std::span<const T> values, std::span<T> out);

/// As the reference, bit for bit, without waiting.
template <class T>
void mean_gradient(const context&, std::span<const T> output_gradient, std::span<T> gradient);

} // namespace cuda

} // namespace troupe
