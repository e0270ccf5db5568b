// SPDX-License-Identifier: Apache-2.0
// Convolution: the sum as it is written down, and its two derivatives.
#include "kernels/math/images/convolution.hpp"

#include <algorithm>

namespace troupe::reference {

namespace {

/// Calls `body(input, weight, output)` with the positions of each product's three elements, those
/// of an output in the order of the window.
template <class Body>
void for_products(const convolution_extents& extents, Body body) {
  for (size_t window = 0; window < extents.windows(); ++window)
    extents.for_pixels_of(window, [&](size_t pixel, size_t offset) {
      for (size_t channel = 0; channel < extents.channels; ++channel)
        for (size_t output = 0; output < extents.outputs; ++output)
          body(pixel * extents.channels + channel,
               (offset * extents.channels + channel) * extents.outputs + output,
               window * extents.outputs + output);
    });
}

} // namespace

template <class T>
void convolve(const context&, const convolution_extents& extents, std::span<const T> input,
              std::span<const T> weights, std::span<T> output) {
  detail::check_sizes(extents, input.size(), weights.size(), output.size());
  std::ranges::fill(output, T{0});
  for_products(extents,
               [=](size_t in, size_t by, size_t out) { output[out] += input[in] * weights[by]; });
}

template <class T>
void convolve_input_gradient(const context&, const convolution_extents& extents,
                             std::span<const T> weights, std::span<const T> output_gradient,
                             std::span<T> input_gradient) {
  detail::check_sizes(extents, input_gradient.size(), weights.size(), output_gradient.size());
  std::ranges::fill(input_gradient, T{0});
  for_products(extents, [=](size_t in, size_t by, size_t out) {
    input_gradient[in] += weights[by] * output_gradient[out];
  });
}

template <class T>
void convolve_weights_gradient(const context&, const convolution_extents& extents,
                               std::span<const T> input, std::span<const T> output_gradient,
                               std::span<T> weights_gradient) {
  detail::check_sizes(extents, input.size(), weights_gradient.size(), output_gradient.size());
  std::ranges::fill(weights_gradient, T{0});
  for_products(extents, [=](size_t in, size_t by, size_t out) {
    weights_gradient[by] += input[in] * output_gradient[out];
  });
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

} // namespace troupe::reference
