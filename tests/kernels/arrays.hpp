// SPDX-License-Identifier: Apache-2.0
// Tools of the tests of operations: arrays with guards at both ends, fills, comparisons, and the
// context of the twins that others are compared with.
#pragma once

#include "kernels/tensor/context.hpp"
#include "tests/doctest.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace troupe::test {

/// For the plain twins.
inline const reference::context plain;

/// Sizes around the widths of vectors and of blocks, odd ones, and several chunks of a parallel
/// loop.
inline constexpr size_t sizes[] = {0, 1, 7, 31, 32, 33, 255, 256, 257, 1009, 16384, 16385, 100003};

/// The size of a matrix.
struct extents {
  size_t rows;
  size_t columns;
};

/// An array between canary words; it checks when it goes that nothing was written beyond its ends.
template <class T>
class guarded {
public:
  guarded() : guarded(0) {}

  explicit guarded(size_t count) : memory_(count * sizeof(T) + 2 * guard_bytes, canary) {}

  explicit guarded(std::span<const T> values) : guarded(values.size()) {
    if (!values.empty())
      std::memcpy(memory_.data() + guard_bytes, values.data(), values.size_bytes());
  }

  ~guarded() {
    bool untouched = true;
    for (size_t i = 0; i < guard_bytes; ++i)
      untouched = untouched && memory_[i] == canary && memory_[memory_.size() - 1 - i] == canary;
    CHECK_MESSAGE(untouched, "written beyond the end of an array");
  }

  guarded(const guarded&) = default;
  guarded& operator=(const guarded&) = default;

  [[nodiscard]] std::span<T> span() {
    return {reinterpret_cast<T*>(memory_.data() + guard_bytes),
            (memory_.size() - 2 * guard_bytes) / sizeof(T)};
  }

  [[nodiscard]] std::span<const T> view() { return span(); }

  T& operator[](size_t i) { return span()[i]; }

private:
  static constexpr size_t guard_bytes = 64;
  static constexpr uint8_t canary = 0xa5;
  std::vector<uint8_t> memory_;
};

/// Values of a normal distribution; the same for the same seed.
template <class T>
guarded<T> normal(size_t count, uint64_t seed) {
  std::mt19937_64 engine{seed};
  std::normal_distribution<double> draw;
  guarded<T> result{count};
  for (auto& value : result.span())
    value = static_cast<T>(draw(engine));
  return result;
}

/// Every extreme of the format, in an order that depends on the seed: zeros of both signs,
/// denormals, the largest values, infinities and NaN between ordinary numbers.
template <class T>
guarded<T> extreme(size_t count, uint64_t seed) {
  using limits = std::numeric_limits<T>;
  const T values[] = {T{0},
                      -T{0},
                      T{1},
                      T{-3.25},
                      limits::min(),
                      -limits::min(),
                      limits::max(),
                      limits::lowest(),
                      limits::infinity(),
                      -limits::infinity(),
                      limits::quiet_NaN(),
                      limits::denorm_min(),
                      -limits::denorm_min(),
                      limits::min() / 3,
                      limits::epsilon(),
                      T{65504}};
  std::mt19937_64 engine{seed};
  guarded<T> result{count};
  for (auto& value : result.span())
    value = values[engine() % std::size(values)];
  return result;
}

/// A function that fills an array: `normal<T>`, `extreme<T>`.
template <class T>
using array_maker = guarded<T> (*)(size_t count, uint64_t seed);

/// True if both are the same number bit for bit, or both NaN (its payload is not promised).
template <class T>
bool same_bits(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Index of the first element in which the arrays differ; their size if there is none.
template <class T>
size_t first_difference(std::span<T> a, std::span<T> b) {
  REQUIRE(a.size() == b.size());
  size_t i = 0;
  while (i < a.size() && same_bits(a[i], b[i]))
    ++i;
  return i;
}

template <class T>
bool same_bits(guarded<T>& a, guarded<T>& b) {
  return first_difference(a.span(), b.span()) == a.span().size();
}

} // namespace troupe::test
