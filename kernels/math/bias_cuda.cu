// SPDX-License-Identifier: Apache-2.0
// The bias on a GPU.
#include "kernels/cuda/launch.cuh"
#include "kernels/math/bias.hpp"
#include "messages/assert.hpp"

namespace troupe::cuda {

template <class T>
void add_bias(const context& on, std::span<const T> input, std::span<const T> bias,
              std::span<T> output) {
  auto columns = bias.size();
  TROUPE_ASSERT(input.size() == output.size(), input.size(), output.size());
  TROUPE_ASSERT(columns == 0 ? input.empty() : input.size() % columns == 0, input.size(), columns);
  const T *from = input.data(), *added = bias.data();
  T* to = output.data();
  auto add = [=] __device__(size_t i) { to[i] = from[i] + added[i % columns]; };
  for_each(on, input.size(), add);
}

template <class T>
void bias_gradient(const context& on, std::span<const T> output_gradient,
                   std::span<T> bias_gradient) {
  auto columns = bias_gradient.size();
  TROUPE_ASSERT(columns == 0 ? output_gradient.empty() : output_gradient.size() % columns == 0,
                output_gradient.size(), columns);
  const T *from = output_gradient.data(), *end = from + output_gradient.size();
  T* to = bias_gradient.data();
  // A thread for each column: neighbours read neighbours.
  auto add_up = [=] __device__(size_t column) {
    T sum = 0;
    for (const T* at = from + column; at < end; at += columns)
      sum += *at;
    to[column] = sum;
  };
  for_each(on, columns, add_up);
}

template void add_bias(const context&, std::span<const float>, std::span<const float>,
                       std::span<float>);
template void add_bias(const context&, std::span<const double>, std::span<const double>,
                       std::span<double>);
template void bias_gradient(const context&, std::span<const float>, std::span<float>);
template void bias_gradient(const context&, std::span<const double>, std::span<double>);

} // namespace troupe::cuda
