// SPDX-License-Identifier: Apache-2.0
// The bias row by row, in memory order.
#include "kernels/math/bias.hpp"

#include "kernels/tensor/parallel.hpp"

#include <algorithm>

namespace troupe::cpu {

template <class T>
void add_bias(const context&, std::span<const T> input, std::span<const T> bias,
              std::span<T> output) {
  auto columns = bias.size();
  troupe::detail::check_sizes(bias.size(), {input.size(), output.size()});
  with_widest_vectors([&] {
    for (size_t row = 0; row < input.size(); row += columns) {
      const T* from = input.data() + row;
      const T* added = bias.data();
      T* to = output.data() + row;
      TROUPE_INDEPENDENT
      for (size_t column = 0; column < columns; ++column)
        to[column] = from[column] + added[column];
    }
  });
}

template <class T>
void bias_gradient(const context&, std::span<const T> output_gradient, std::span<T> bias_gradient) {
  auto columns = bias_gradient.size();
  troupe::detail::check_sizes(columns, {output_gradient.size()});
  std::fill(bias_gradient.begin(), bias_gradient.end(), T{0});
  with_widest_vectors([&] {
    for (size_t row = 0; row < output_gradient.size(); row += columns) {
      const T* from = output_gradient.data() + row;
      T* to = bias_gradient.data();
      TROUPE_INDEPENDENT
      for (size_t column = 0; column < columns; ++column)
        to[column] += from[column];
    }
  });
}

template void add_bias(const context&, std::span<const float>, std::span<const float>,
                       std::span<float>);
template void add_bias(const context&, std::span<const double>, std::span<const double>,
                       std::span<double>);
template void bias_gradient(const context&, std::span<const float>, std::span<float>);
template void bias_gradient(const context&, std::span<const double>, std::span<double>);

} // namespace troupe::cpu
