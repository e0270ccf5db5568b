// SPDX-License-Identifier: Apache-2.0
// The largest number of each window, one channel after the other.
#include "kernels/math/images/max_pool.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>

namespace troupe::reference {

template <class T>
void max_pool(const context&, const image_windows& windows, std::span<const T> input,
              std::span<T> output) {
  const auto channels = windows.channels;
  detail::check_sizes(windows, input.size(), output.size());
  for (size_t i = 0; i < output.size(); ++i)
    output[i] = input[detail::place_of_largest(windows, input.data(), i / channels, i % channels)];
}

template <class T>
void max_pool_gradient(const context&, const image_windows& windows, std::span<const T> input,
                       std::span<const T> output_gradient, std::span<T> input_gradient) {
  const auto channels = windows.channels;
  detail::check_sizes(windows, input.size(), output_gradient.size());
  TROUPE_ASSERT(input_gradient.size() == input.size(), input_gradient.size(), input.size());
  std::ranges::fill(input_gradient, T{0});
  for (size_t i = 0; i < output_gradient.size(); ++i)
    input_gradient[detail::place_of_largest(windows, input.data(), i / channels, i % channels)]
      += output_gradient[i];
}

template void max_pool(const context&, const image_windows&, std::span<const float>,
                       std::span<float>);
template void max_pool(const context&, const image_windows&, std::span<const double>,
                       std::span<double>);
template void max_pool_gradient(const context&, const image_windows&, std::span<const float>,
                                std::span<const float>, std::span<float>);
template void max_pool_gradient(const context&, const image_windows&, std::span<const double>,
                                std::span<const double>, std::span<double>);

} // namespace troupe::reference
