// SPDX-License-Identifier: Apache-2.0
// Element-by-element arithmetic on vectors and all cores.
#include "kernels/math/elementwise.hpp"

#include "kernels/tensor/parallel.hpp"
#include "messages/errors/assert.hpp"

#include <cstddef>

namespace troupe::cpu {

namespace {

/// out[i] = function(in[i]...). The arrays are equal or disjoint, so iterations are independent.
template <class T, class Function, class... In>
void map(const context& on, std::span<T> out, Function function, std::span<const In>... in) {
  (TROUPE_ASSERT(in.size() == out.size(), in.size(), out.size()), ...);
  auto loop = [](T* to, size_t count, Function f, const In*... from) {
    TROUPE_INDEPENDENT
    for (size_t i = 0; i < count; ++i)
      to[i] = f(from[i]...);
  };
  parallel_chunks(on, out.size(), [&](size_t begin, size_t end) {
    with_widest_vectors(
      [&] { loop(out.data() + begin, end - begin, function, in.data() + begin...); });
  });
}

} // namespace

template <class T>
void fill(const context& on, std::span<T> out, scalar<T> value) {
  map(on, out, [value] { return value; });
}

template <class T>
void copy(const context& on, std::span<const T> a, std::span<T> out) {
  auto same = [](T x) { return x; };
  map(on, out, same, a);
}

template <class T>
void add(const context& on, std::span<const T> a, std::span<const T> b, std::span<T> out) {
  auto sum = [](T x, T y) { return x + y; };
  map(on, out, sum, a, b);
}

template <class T>
void multiply(const context& on, std::span<const T> a, std::span<const T> b, std::span<T> out) {
  auto product = [](T x, T y) { return x * y; };
  map(on, out, product, a, b);
}

template <class T>
void scale(const context& on, scalar<T> factor, std::span<const T> a, std::span<T> out) {
  auto scaled = [factor](T x) { return factor * x; };
  map(on, out, scaled, a);
}

template <class T>
void lerp(const context& on, std::span<const T> a, std::span<const T> b, scalar<T> weight,
          std::span<T> out) {
  auto between = [weight](T x, T y) { return x + weight * (y - x); };
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

} // namespace troupe::cpu
