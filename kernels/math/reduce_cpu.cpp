// SPDX-License-Identifier: Apache-2.0
// Sums and norms on vectors and all cores, in an order that depends on sizes alone.
#include "kernels/math/reduce.hpp"

#include "kernels/tensor/parallel.hpp"
#include "kernels/tensor/vector_math.hpp"

#include <algorithm>

namespace troupe::cpu {

namespace {

/// Calls `body(offset, count)` for each block of [begin, end).
template <class Body>
void for_blocks(size_t begin, size_t end, const Body& body) {
  for (size_t at = begin; at < end; at += block_elements)
    body(at, std::min(block_elements, end - at));
}

/// The sum of function(value) over some values, in double.
template <class T, class Function>
double sum_of(std::span<const T> values, Function function) {
  double sum = 0;
  with_widest_vectors([=, &sum] {
    sum = detail::sum_lanes<double>(values.size(), [=](size_t i) { return function(values[i]); });
  });
  return sum;
}

/// The sum of function(element) over all elements, shared between cores.
template <class Function>
double parallel_sum_of(const elements& values, Function function) {
  double total = 0;
  visit_floating(values.type, [&]<class T>(T) {
    auto all = values.as<T>();
    total = parallel_sum(all.size(), [=](size_t begin, size_t end) {
      return sum_of(all.subspan(begin, end - begin), function);
    });
  });
  return total;
}

template <class T>
double square(T value) {
  return widen<double>(value) * widen<double>(value);
}

} // namespace

template <class T>
void reduce(const context& on, const gradient_sum& gradient, std::span<T> out) {
  check<T>(gradient, out.size());
  parallel_chunks(on, out.size(), [&](size_t begin, size_t end) {
    for_blocks(begin, end, [&](size_t at, size_t count) {
      combine_block(gradient, at, count, out.data() + at);
    });
  });
}

template <class T>
void accumulate(const context& on, const elements& source, std::span<T> sum) {
  const elements sources[] = {{sum.data(), dtype_of<T>, sum.size()}, source};
  reduce(on, gradient_sum{.sources = sources}, sum);
}

double sum(const context&, const elements& values) {
  return parallel_sum_of(values, [](auto value) { return widen<double>(value); });
}

double squared_norm(const context&, const elements& values) {
  return parallel_sum_of(values, [](auto value) { return square(value); });
}

template <class T>
double squared_norm(const context&, const gradient_sum& gradient) {
  TROUPE_ASSERT(!gradient.sources.empty());
  check<T>(gradient, gradient.sources[0].count);
  return parallel_sum(gradient.sources[0].count, [&](size_t begin, size_t end) {
    double sum = 0;
    for_blocks(begin, end, [&](size_t at, size_t count) {
      alignas(64) T block[block_elements];
      combine_block(gradient, at, count, block);
      sum += sum_of(std::span<const T>{block, count}, [](T value) { return square(value); });
    });
    return sum;
  });
}

size_t count_non_finite(const context&, const elements& values) {
  // A double counts exactly to 2^53.
  return static_cast<size_t>(parallel_sum_of(
    values, [](auto value) { return troupe::detail::is_non_finite(value) ? 1.0 : 0.0; }));
}

#define TROUPE_INSTANTIATE(T)                                                                      \
  template void reduce(const context&, const gradient_sum&, std::span<T>);                         \
  template void accumulate(const context&, const elements&, std::span<T>);                         \
  template double squared_norm<T>(const context&, const gradient_sum&);

TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)

#undef TROUPE_INSTANTIATE

} // namespace troupe::cpu
