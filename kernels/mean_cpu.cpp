// SPDX-License-Identifier: Apache-2.0
// The mean in vector registers.
#include "kernels/mean.hpp"

#include "kernels/vector_math.hpp"

namespace troupe::cpu {

template <class T>
T mean(const context&, std::span<const T> values) {
  const T* from = values.data();
  auto sum = detail::sum_lanes<double>(values.size(), [&](size_t i) { return double{from[i]}; });
  return static_cast<T>(sum / static_cast<double>(values.size()));
}

template float mean(const context&, std::span<const float>);
template double mean(const context&, std::span<const double>);

} // namespace troupe::cpu
