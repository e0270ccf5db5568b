// SPDX-License-Identifier: Apache-2.0
// Dropout: a part of a layer is set to 0 at random, so that no unit can rely on another one.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace troupe {

/// A random word below this drops its element. @pre 0 <= rate < 1
[[nodiscard]] inline uint32_t dropout_threshold(double rate) {
  return static_cast<uint32_t>(std::min(std::round(rate * 0x1p32), 0x1p32 - 1));
}

/// Most elements that one key serves: its stream holds this many words.
inline constexpr uint64_t dropout_elements_max = uint64_t{1} << 34;

namespace detail {

/// Asserts that arrays of these sizes can be the input and the output of a dropout of such a rate.
inline void check_dropout(double rate, size_t input, size_t output) {
  TROUPE_ASSERT(input == output, input, output);
  TROUPE_ASSERT(rate >= 0, rate);
  TROUPE_ASSERT(rate < 1, rate);
}

} // namespace detail

namespace reference {

/// output[i] = input[i] / (1 - rate) if element i is kept, else 0; the mean stays what it was.
///
/// Element i is dropped if word i of the stream of `key` is below rate * 2^32. The mask is thus a
/// function of the key and is stored nowhere: since the operation is linear, its gradient is the
/// operation itself with the same key, applied to the output's gradient.
///
/// Shape: input   [n]  f32 or f64
///        output  [n]  may be input itself
/// @pre 0 <= rate < 1; n <= `dropout_elements_max`. A dropped NaN becomes 0.
/// Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting",
/// JMLR 15 (2014), section 10, scaled during training.
template <class T>
void dropout(const context&, double rate, const random_key& key, std::span<const T> input,
             std::span<T> output);

} // namespace reference

namespace cpu {

/// As the reference, bit for bit.
template <class T>
void dropout(const context&, double rate, const random_key& key, std::span<const T> input,
             std::span<T> output);

} // namespace cpu

namespace cuda {

/// As the reference, bit for bit.
template <class T>
void dropout(const context&, double rate, const random_key& key, std::span<const T> input,
             std::span<T> output);

/// The same with a key that lies on the device, and is read when the kernel runs: for graphs, which
/// are captured once and launched with other keys.
template <class T>
void dropout(const context&, double rate, const random_key* key, std::span<const T> input,
             std::span<T> output);

} // namespace cuda

} // namespace troupe
