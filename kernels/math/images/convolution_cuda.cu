// SPDX-License-Identifier: Apache-2.0
// Convolution on a GPU, directly: no matrix of windows is written.
#include "kernels/cuda/rows.cuh"
#include "kernels/math/images/convolution.hpp"

namespace troupe::cuda {

namespace {

/// A weight's gradient is a sum over windows: 16 threads share it.
template <class T>
__global__ void __launch_bounds__(block_threads)
  weights_gradient_kernel(convolution_extents extents, const T* input, const T* arriving, T* to) {
  const auto weights = extents.weight_elements();
  for_rows(weights, 1, [=](size_t weight, size_t is_there) {
    const auto output = weight % extents.outputs;
    const auto channel = weight / extents.outputs % extents.channels;
    const auto offset = weight / extents.outputs / extents.channels;
    T sum = sum_row<T>(is_there * extents.windows(), [=](size_t window) {
      const auto pixel = extents.pixel_of(window, offset);
      if (pixel == image_windows::no_pixel) return T{0};
      return input[pixel * extents.channels + channel]
             * arriving[window * extents.outputs + output];
    });
    if (is_there != 0 && lane_of_row() == 0) to[weight] = sum;
  });
}

} // namespace

template <class T>
void convolve(const context& on, const convolution_extents& extents, std::span<const T> input,
              std::span<const T> weights, std::span<T> output) {
  troupe::detail::check_sizes(extents, input.size(), weights.size(), output.size());
  const T *from = input.data(), *by = weights.data();
  T* to = output.data();
  auto weigh = [=] __device__(size_t i) {
    T sum = 0;
    extents.for_pixels_of(i / extents.outputs, [&](size_t pixel, size_t offset) {
      const T* in = from + pixel * extents.channels;
      const T* weight = by + offset * extents.channels * extents.outputs + i % extents.outputs;
      for (size_t channel = 0; channel < extents.channels; ++channel)
        sum += in[channel] * weight[channel * extents.outputs];
    });
    to[i] = sum;
  };
  for_each(on, output.size(), weigh);
}

template <class T>
void convolve_input_gradient(const context& on, const convolution_extents& extents,
                             std::span<const T> weights, std::span<const T> output_gradient,
                             std::span<T> input_gradient) {
  troupe::detail::check_sizes(extents, input_gradient.size(), weights.size(),
                              output_gradient.size());
  const T *by = weights.data(), *arriving = output_gradient.data();
  T* to = input_gradient.data();
  auto weigh = [=] __device__(size_t i) {
    T sum = 0;
    extents.for_windows_over(i / extents.channels, [&](size_t window, size_t offset) {
      const T* gradient = arriving + window * extents.outputs;
      const T* weight = by + (offset * extents.channels + i % extents.channels) * extents.outputs;
      for (size_t output = 0; output < extents.outputs; ++output)
        sum += weight[output] * gradient[output];
    });
    to[i] = sum;
  };
  for_each(on, input_gradient.size(), weigh);
}

template <class T>
void convolve_weights_gradient(const context& on, const convolution_extents& extents,
                               std::span<const T> input, std::span<const T> output_gradient,
                               std::span<T> weights_gradient) {
  troupe::detail::check_sizes(extents, input.size(), weights_gradient.size(),
                              output_gradient.size());
  launch(on, blocks_for(weights_gradient.size(), rows_at_once), block_threads,
         weights_gradient_kernel<T>, extents, input.data(), output_gradient.data(),
         weights_gradient.data());
}

template void convolve(const context&, const convolution_extents&, std::span<const float>,
                       std::span<const float>, std::span<float>);
template void convolve(const context&, const convolution_extents&, std::span<const double>,
                       std::span<const double>, std::span<double>);
template void convolve_input_gradient(const context&, const convolution_extents&,
                                      std::span<const float>, std::span<const float>,
                                      std::span<float>);
template void convolve_input_gradient(const context&, const convolution_extents&,
                                      std::span<const double>, std::span<const double>,
                                      std::span<double>);
template void convolve_weights_gradient(const context&, const convolution_extents&,
                                        std::span<const float>, std::span<const float>,
                                        std::span<float>);
template void convolve_weights_gradient(const context&, const convolution_extents&,
                                        std::span<const double>, std::span<const double>,
                                        std::span<double>);

} // namespace troupe::cuda
