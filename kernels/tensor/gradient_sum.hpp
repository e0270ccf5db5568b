// SPDX-License-Identifier: Apache-2.0
// The gradients of one variable, and how a pass over them makes one of them.
#pragma once

#include "kernels/tensor/elements.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <limits>
#include <span>

namespace troupe {

/// The gradients of one variable, and how they become one: added up in the order of `sources`, each
/// widened to the variable's type T first, then sum / divisor * scale, each operation rounded to T,
/// and at last cut to [-limit, limit].
/// Shape: sources  k x [n], k >= 1; f32, f16 or bf16, and f64 if T is f64
struct gradient_sum {
  std::span<const elements> sources;
  double divisor = 1; ///< The number of gradients, for their mean.
  double scale = 1;   ///< Factor of every gradient, by a clip or a loss scale.
  double limit = std::numeric_limits<double>::infinity(); ///< A clip by value; not negative.
  /// In place of `scale`, in memory of the device; for twins of a GPU alone. Null: `scale`.
  const double* scale_there = nullptr;
};

/// The nearest number to `value` in [-limit, limit]; NaN stays NaN.
template <class T>
[[nodiscard]] constexpr T limited(T value, T limit) {
  return value > limit ? limit : value < -limit ? -limit : value;
}

/// True if every number of type `from` is also one of type `to`, both floating.
[[nodiscard]] constexpr bool widens_to(dtype from, dtype to) {
  return is_floating(from) && is_floating(to)
         && (from == to || element_bytes(from) < element_bytes(to));
}

/// Asserts what `gradient_sum` demands, for T and n elements.
template <class T>
void check(const gradient_sum& gradient, size_t count) {
  TROUPE_ASSERT(!gradient.sources.empty());
  for (const auto& source : gradient.sources) {
    TROUPE_ASSERT(source.count == count, source.count, count);
    TROUPE_ASSERT(widens_to(source.type, dtype_of<T>), to_string(source.type));
  }
}

namespace reference {

/// Element i of the array that `gradient` describes.
template <class T>
[[nodiscard]] T combined(const gradient_sum& gradient, size_t i) {
  auto element = [i](const elements& source) {
    T value{};
    visit_floating(source.type, [&]<class From>(From) { value = widen<T>(source.as<From>()[i]); });
    return value;
  };
  T sum = element(gradient.sources[0]);
  for (const auto& source : gradient.sources.subspan(1))
    sum += element(source);
  return limited(sum / static_cast<T>(gradient.divisor) * static_cast<T>(gradient.scale),
                 static_cast<T>(gradient.limit));
}

} // namespace reference

namespace cpu {

/// Elements that a pass over gradients works on at a time. The processor looks a few hundred
/// instructions ahead: in a block this short it already fetches the variable and the slots while it
/// still adds up the gradients. Measured with 8 gradients, blocks of 512 moved a quarter less.
inline constexpr size_t block_elements = 128;

/// Elements [begin, begin + count) of the array that `gradient` describes.
/// @pre `out` holds `count` elements, and is disjoint from the sources or this block of the first.
template <class T>
void combine_block(const gradient_sum& gradient, size_t begin, size_t count, T* out);

} // namespace cpu

} // namespace troupe
