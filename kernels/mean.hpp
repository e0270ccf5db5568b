// SPDX-License-Identifier: Apache-2.0
// The mean of an array.
#pragma once

#include "kernels/context.hpp"

#include <span>

namespace troupe {

namespace reference {

/// The arithmetic mean, added up in f64 from the first value to the last; NaN for no values.
template <class T>
[[nodiscard]] T mean(const context&, std::span<const T> values);

} // namespace reference

namespace cpu {

/// As the reference, in 16 partial sums.
template <class T>
[[nodiscard]] T mean(const context&, std::span<const T> values);

} // namespace cpu

namespace cuda {

/// As the cpu twin, bit for bit; waits for its result.
template <class T>
[[nodiscard]] T mean(const context&, std::span<const T> values);

/// out[0] = mean(values), without waiting.
template <class T>
void mean(const context&, std::span<const T> values, std::span<T> out);

} // namespace cuda

} // namespace troupe
