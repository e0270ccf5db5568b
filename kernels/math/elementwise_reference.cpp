// SPDX-License-Identifier: Apache-2.0
// Element-by-element arithmetic in plain loops.
#include "kernels/math/elementwise.hpp"

#include "messages/assert.hpp"

namespace troupe::reference {

template <class T>
void fill(const context&, std::span<T> out, scalar<T> value) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = value;
}

template <class T>
void copy(const context&, std::span<const T> a, std::span<T> out) {
  TROUPE_ASSERT(a.size() == out.size(), a.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = a[i];
}

template <class T>
void add(const context&, std::span<const T> a, std::span<const T> b, std::span<T> out) {
  TROUPE_ASSERT(a.size() == out.size(), a.size(), out.size());
  TROUPE_ASSERT(b.size() == out.size(), b.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = a[i] + b[i];
}

template <class T>
void subtract(const context&, std::span<const T> a, std::span<const T> b, std::span<T> out) {
  TROUPE_ASSERT(a.size() == out.size(), a.size(), out.size());
  TROUPE_ASSERT(b.size() == out.size(), b.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = a[i] - b[i];
}

template <class T>
void multiply(const context&, std::span<const T> a, std::span<const T> b, std::span<T> out) {
  TROUPE_ASSERT(a.size() == out.size(), a.size(), out.size());
  TROUPE_ASSERT(b.size() == out.size(), b.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = a[i] * b[i];
}

template <class T>
void scale(const context&, scalar<T> factor, std::span<const T> a, std::span<T> out) {
  TROUPE_ASSERT(a.size() == out.size(), a.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = factor * a[i];
}

template <class T>
void axpy(const context&, scalar<T> factor, std::span<const T> x, std::span<T> y) {
  TROUPE_ASSERT(x.size() == y.size(), x.size(), y.size());
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = factor * x[i] + y[i];
}

template <class T>
void lerp(const context&, std::span<const T> a, std::span<const T> b, scalar<T> weight,
          std::span<T> out) {
  TROUPE_ASSERT(a.size() == out.size(), a.size(), out.size());
  TROUPE_ASSERT(b.size() == out.size(), b.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = a[i] + weight * (b[i] - a[i]);
}

template <class T>
void clip_by_value(const context&, std::span<const T> a, scalar<T> low, scalar<T> high,
                   std::span<T> out) {
  TROUPE_ASSERT(a.size() == out.size(), a.size(), out.size());
  TROUPE_ASSERT(low <= high, low, high);
  for (size_t i = 0; i < out.size(); ++i) {
    T value = a[i];
    if (value < low) value = low;
    if (value > high) value = high;
    out[i] = value;
  }
}

#define TROUPE_INSTANTIATE(T)                                                                      \
  template void fill(const context&, std::span<T>, T);                                             \
  template void copy(const context&, std::span<const T>, std::span<T>);                            \
  template void add(const context&, std::span<const T>, std::span<const T>, std::span<T>);         \
  template void subtract(const context&, std::span<const T>, std::span<const T>, std::span<T>);    \
  template void multiply(const context&, std::span<const T>, std::span<const T>, std::span<T>);    \
  template void scale(const context&, T, std::span<const T>, std::span<T>);                        \
  template void axpy(const context&, T, std::span<const T>, std::span<T>);                         \
  template void lerp(const context&, std::span<const T>, std::span<const T>, T, std::span<T>);     \
  template void clip_by_value(const context&, std::span<const T>, T, T, std::span<T>);

TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)

#undef TROUPE_INSTANTIATE

} // namespace troupe::reference
