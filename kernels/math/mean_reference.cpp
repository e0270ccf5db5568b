// SPDX-License-Identifier: Apache-2.0
// The mean from left to right.
#include "kernels/math/mean.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>

namespace troupe::reference {

template <class T>
T mean(const context&, std::span<const T> values) {
  double sum = 0;
  for (auto value : values)
    sum += value;
  return static_cast<T>(sum / static_cast<double>(values.size()));
}

template <class T>
void mean_gradient(const context&, std::span<const T> output_gradient, std::span<T> gradient) {
  TROUPE_ASSERT(output_gradient.size() == 1, output_gradient.size());
  auto share = static_cast<double>(output_gradient[0]) / static_cast<double>(gradient.size());
  std::ranges::fill(gradient, static_cast<T>(share));
}

template float mean(const context&, std::span<const float>);
template double mean(const context&, std::span<const double>);
template void mean_gradient(const context&, std::span<const float>, std::span<float>);
template void mean_gradient(const context&, std::span<const double>, std::span<double>);

} // namespace troupe::reference
