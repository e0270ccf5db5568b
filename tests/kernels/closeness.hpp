// SPDX-License-Identifier: Apache-2.0
// Comparison of twins that do not round alike: within a bound, and alike in NaN and infinity.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace troupe::test {

/// How far two results may lie apart: |a - b| <= absolute + relative * |b|.
struct bound {
  double relative = 0;
  double absolute = 0;
};

/// `count` times the relative rounding error of the type.
template <class T>
constexpr double roundings(double count) {
  return count * std::numeric_limits<T>::epsilon() / 2;
}

/// True within the bound, for the same infinity, and for two NaN.
template <class T>
bool is_close(T a, T b, bound allowed) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  auto distance = std::abs(static_cast<double>(a) - static_cast<double>(b));
  return distance <= allowed.absolute + allowed.relative * std::abs(static_cast<double>(b));
}

/// Index of the first element that is not close; the size if there is none.
template <class T>
size_t first_not_close(std::span<T> a, std::span<T> b, bound allowed) {
  size_t i = 0;
  while (i < a.size() && is_close(a[i], b[i], allowed))
    ++i;
  return i;
}

} // namespace troupe::test
