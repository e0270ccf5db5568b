// SPDX-License-Identifier: Apache-2.0
// The bias on a GPU.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/matrix.cuh"
#include "kernels/math/bias.hpp"

namespace troupe::cuda {

namespace {

template <class T>
struct bias_addition {
  const T* input;
  const T* bias;
  T* output;

  template <size_t width>
  __device__ void work_on(const packet_place& here) const {
    auto sum = [](T value, T added) { return value + added; };
    store(
      output, here.index,
      map_packet<T, width>(sum, load<width>(input, here.index), load<width>(bias, here.in_row)));
  }
};

} // namespace

template <class T>
void add_bias(const context& on, std::span<const T> input, std::span<const T> bias,
              std::span<T> output) {
  auto columns = bias.size();
  troupe::detail::check_sizes(bias.size(), {input.size(), output.size()});
  if (columns == 0) return;
  bool aligned = are_aligned(packet_bytes, input.data(), bias.data(), output.data());
  for_packets<T>(on, input.size() / columns, columns, aligned,
                 bias_addition<T>{input.data(), bias.data(), output.data()});
}

template <class T>
void bias_gradient(const context& on, std::span<const T> output_gradient,
                   std::span<T> bias_gradient) {
  auto columns = bias_gradient.size();
  troupe::detail::check_sizes(columns, {output_gradient.size()});
  if (columns == 0) return;
  auto element = [from = output_gradient.data()] __device__(size_t, size_t i) {
    return std::array<T, 1>{from[i]};
  };
  sum_columns(on, output_gradient.size() / columns, columns, element,
              column_sums<1, T>{{bias_gradient.data()}});
}

template void add_bias(const context&, std::span<const float>, std::span<const float>,
                       std::span<float>);
template void add_bias(const context&, std::span<const double>, std::span<const double>,
                       std::span<double>);
template void bias_gradient(const context&, std::span<const float>, std::span<float>);
template void bias_gradient(const context&, std::span<const double>, std::span<double>);

} // namespace troupe::cuda
