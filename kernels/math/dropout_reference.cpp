// SPDX-License-Identifier: Apache-2.0
// Dropout, one element at a time.
#include "kernels/math/dropout.hpp"

namespace troupe::reference {

template <class T>
void dropout(const context&, double rate, const random_key& key, std::span<const T> input,
             std::span<T> output) {
  detail::check_dropout(rate, input.size(), output.size());
  auto scale = static_cast<T>(1 / (1 - rate));
  for (size_t i = 0; i < input.size(); ++i) {
    auto word = key.block(static_cast<uint32_t>(i / 4))[i % 4];
    output[i] = word < dropout_threshold(rate) ? T{0} : input[i] * scale;
  }
}

template void dropout(const context&, double, const random_key&, std::span<const float>,
                      std::span<float>);
template void dropout(const context&, double, const random_key&, std::span<const double>,
                      std::span<double>);

} // namespace troupe::reference
