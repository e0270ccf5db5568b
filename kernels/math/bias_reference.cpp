// SPDX-License-Identifier: Apache-2.0
// The bias in plain loops, column by column.
#include "kernels/math/bias.hpp"

namespace troupe::reference {

template <class T>
void add_bias(const context&, std::span<const T> input, std::span<const T> bias,
              std::span<T> output) {
  detail::check_sizes(bias.size(), {input.size(), output.size()});
  for (size_t i = 0; i < input.size(); ++i)
    output[i] = input[i] + bias[i % bias.size()];
}

template <class T>
void bias_gradient(const context&, std::span<const T> output_gradient, std::span<T> bias_gradient) {
  auto columns = bias_gradient.size();
  detail::check_sizes(columns, {output_gradient.size()});
  for (size_t column = 0; column < columns; ++column) {
    T sum = 0;
    for (size_t i = column; i < output_gradient.size(); i += columns)
      sum += output_gradient[i];
    bias_gradient[column] = sum;
  }
}

template void add_bias(const context&, std::span<const float>, std::span<const float>,
                       std::span<float>);
template void add_bias(const context&, std::span<const double>, std::span<const double>,
                       std::span<double>);
template void bias_gradient(const context&, std::span<const float>, std::span<float>);
template void bias_gradient(const context&, std::span<const double>, std::span<double>);

} // namespace troupe::reference
