// SPDX-License-Identifier: Apache-2.0
// Element-by-element arithmetic on a GPU.
#include "kernels/cuda/packet.cuh"
#include "kernels/math/elementwise.hpp"

namespace troupe::cuda {

template <class T>
void fill(const context& on, std::span<T> out, scalar<T> value) {
  auto same = [=] __device__() { return value; };
  map(on, out, same);
}

template <class T>
void copy(const context& on, std::span<const T> a, std::span<T> out) {
  TROUPE_ASSERT(a.size() == out.size(), a.size(), out.size());
  if (a.data() != out.data()) on.note(on.stream().copy(a.data(), out.data(), a.size_bytes()));
}

template <class T>
void add(const context& on, std::span<const T> a, std::span<const T> b, std::span<T> out) {
  auto sum = [] __device__(T x, T y) { return x + y; };
  map(on, out, sum, a, b);
}

template <class T>
void multiply(const context& on, std::span<const T> a, std::span<const T> b, std::span<T> out) {
  auto product = [] __device__(T x, T y) { return x * y; };
  map(on, out, product, a, b);
}

template <class T>
void scale(const context& on, scalar<T> factor, std::span<const T> a, std::span<T> out) {
  auto scaled = [=] __device__(T x) { return factor * x; };
  map(on, out, scaled, a);
}

template <class T>
void lerp(const context& on, std::span<const T> a, std::span<const T> b, scalar<T> weight,
          std::span<T> out) {
  auto between = [=] __device__(T x, T y) { return x + weight * (y - x); };
  map(on, out, between, a, b);
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

} // namespace troupe::cuda
