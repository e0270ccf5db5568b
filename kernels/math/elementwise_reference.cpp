// SPDX-License-Identifier: Apache-2.0
// Element-by-element arithmetic in plain loops.
#include "kernels/math/elementwise.hpp"

#include "messages/errors/assert.hpp"

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
void lerp(const context&, std::span<const T> a, std::span<const T> b, scalar<T> weight,
          std::span<T> out) {
  TROUPE_ASSERT(a.size() == out.size(), a.size(), out.size());
  TROUPE_ASSERT(b.size() == out.size(), b.size(), out.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = a[i] + weight * (b[i] - a[i]);
}

#define TROUPE_INSTANTIATE(T)                                                                      \
  template void fill(const context&, std::span<T>, T);                                             \
  template void copy(const context&, std::span<const T>, std::span<T>);                            \
  template void add(const context&, std::span<const T>, std::span<const T>, std::span<T>);         \
  template void multiply(const context&, std::span<const T>, std::span<const T>, std::span<T>);    \
  template void scale(const context&, T, std::span<const T>, std::span<T>);                        \
  template void lerp(const context&, std::span<const T>, std::span<const T>, T, std::span<T>);

TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)

#undef TROUPE_INSTANTIATE

} // namespace troupe::reference
