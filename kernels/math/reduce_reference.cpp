// SPDX-License-Identifier: Apache-2.0
// Sums and norms from the first element to the last.
#include "kernels/math/reduce.hpp"

#include "messages/errors/assert.hpp"

#include <cmath>

namespace troupe::reference {

namespace {

/// One element in double.
double element(const elements& values, size_t i) {
  double result = 0;
  visit_floating(values.type, [&]<class T>(T) { result = widen<double>(values.as<T>()[i]); });
  return result;
}

} // namespace

template <class T>
void reduce(const context&, const gradient_sum& gradient, std::span<T> out) {
  check<T>(gradient, out.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = combined<T>(gradient, i);
}

template <class T>
void accumulate(const context&, const elements& source, std::span<T> sum) {
  TROUPE_ASSERT(source.count == sum.size(), source.count, sum.size());
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] += static_cast<T>(element(source, i));
}

double sum(const context&, const elements& values) {
  double total = 0;
  for (size_t i = 0; i < values.count; ++i)
    total += element(values, i);
  return total;
}

double squared_norm(const context&, const elements& values) {
  double total = 0;
  for (size_t i = 0; i < values.count; ++i)
    total += element(values, i) * element(values, i);
  return total;
}

template <class T>
double squared_norm(const context&, const gradient_sum& gradient) {
  TROUPE_ASSERT(!gradient.sources.empty());
  check<T>(gradient, gradient.sources[0].count);
  double total = 0;
  for (size_t i = 0; i < gradient.sources[0].count; ++i) {
    auto value = static_cast<double>(combined<T>(gradient, i));
    total += value * value;
  }
  return total;
}

size_t count_non_finite(const context&, const elements& values) {
  size_t count = 0;
  for (size_t i = 0; i < values.count; ++i)
    count += std::isfinite(element(values, i)) ? 0 : 1;
  return count;
}

#define TROUPE_INSTANTIATE(T)                                                                      \
  template void reduce(const context&, const gradient_sum&, std::span<T>);                         \
  template void accumulate(const context&, const elements&, std::span<T>);                         \
  template double squared_norm<T>(const context&, const gradient_sum&);

TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)

#undef TROUPE_INSTANTIATE

} // namespace troupe::reference
