// SPDX-License-Identifier: Apache-2.0
// The mean in vector registers, on all cores.
#include "kernels/math/mean.hpp"

#include "kernels/math/reduce.hpp"
#include "messages/assert.hpp"

#include <algorithm>

namespace troupe::cpu {

template <class T>
T mean(const context& on, std::span<const T> values) {
  return static_cast<T>(sum(on, values) / static_cast<double>(values.size()));
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

} // namespace troupe::cpu
