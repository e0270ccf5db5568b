// SPDX-License-Identifier: Apache-2.0
// The activations on a GPU.
#include "kernels/cuda/packet.cuh"
#include "kernels/math/activation_formulas.hpp"
#include "kernels/math/activations.hpp"

namespace troupe::cuda {

namespace {

using troupe::detail::activation_constant;

template <activation kind>
struct value_of {
  template <class T>
  __device__ T operator()(T x) const {
    return troupe::detail::activated<kind>(x);
  }
};

template <activation kind>
struct gradient_of {
  template <class T>
  __device__ T operator()(T known, T output_gradient) const {
    return troupe::detail::activation_slope<kind>(known) * output_gradient;
  }
};

} // namespace

template <class T>
void activate(const context& on, activation kind, std::span<const T> input, std::span<T> output) {
  troupe::detail::visit_activation(
    kind, [&]<activation f>(activation_constant<f>) { map(on, output, value_of<f>{}, input); });
}

template <class T>
void activate_gradient(const context& on, activation kind, std::span<const T> input,
                       std::span<const T> output, std::span<const T> output_gradient,
                       std::span<T> input_gradient) {
  troupe::detail::visit_activation(kind, [&]<activation f>(activation_constant<f>) {
    map(on, input_gradient, gradient_of<f>{}, troupe::detail::slope_takes_input<f> ? input : output,
        output_gradient);
  });
}

template void activate(const context&, activation, std::span<const float>, std::span<float>);
template void activate(const context&, activation, std::span<const double>, std::span<double>);
template void activate_gradient(const context&, activation, std::span<const float>,
                                std::span<const float>, std::span<const float>, std::span<float>);
template void activate_gradient(const context&, activation, std::span<const double>,
                                std::span<const double>, std::span<const double>,
                                std::span<double>);

} // namespace troupe::cuda
