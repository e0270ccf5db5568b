// SPDX-License-Identifier: Apache-2.0
// The mean in vector registers, on all cores.
#include "kernels/math/mean.hpp"

#include "kernels/math/reduce.hpp"

namespace troupe::cpu {

template <class T>
T mean(const context& on, std::span<const T> values) {
  return static_cast<T>(sum(on, values) / static_cast<double>(values.size()));
}

template <class T>
void mean_gradient(const context&, std::span<const T> output_gradient, std::span<T> gradient) {
  reference::mean_gradient({}, output_gradient, gradient);
}

template float mean(const context&, std::span<const float>);
template double mean(const context&, std::span<const double>);
template void mean_gradient(const context&, std::span<const float>, std::span<float>);
template void mean_gradient(const context&, std::span<const double>, std::span<double>);

} // namespace troupe::cpu
