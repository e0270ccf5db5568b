// SPDX-License-Identifier: Apache-2.0
// The mean from left to right.
#include "kernels/mean.hpp"

namespace troupe::reference {

template <class T>
T mean(const context&, std::span<const T> values) {
  double sum = 0;
  for (auto value : values)
    sum += value;
  return static_cast<T>(sum / static_cast<double>(values.size()));
}

template float mean(const context&, std::span<const float>);
template double mean(const context&, std::span<const double>);

} // namespace troupe::reference
