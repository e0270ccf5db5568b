// SPDX-License-Identifier: Apache-2.0
// The activations on a GPU.
#include "kernels/cuda/packet.cuh"
#include "kernels/math/activation_formulas.hpp"
#include "kernels/math/activations.hpp"

namespace troupe::cuda {

namespace {

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
  using enum activation;
  switch (kind) {
  case tanh:
    return map(on, output, value_of<tanh>{}, input);
  case relu:
    return map(on, output, value_of<relu>{}, input);
  case sigmoid:
    return map(on, output, value_of<sigmoid>{}, input);
  case gelu:
    return map(on, output, value_of<gelu>{}, input);
  case exp:
    return map(on, output, value_of<exp>{}, input);
  case log:
    return map(on, output, value_of<log>{}, input);
  }
  TROUPE_ASSERT(false, static_cast<int>(kind));
}

template <class T>
void activate_gradient(const context& on, activation kind, std::span<const T> input,
                       std::span<const T> output, std::span<const T> output_gradient,
                       std::span<T> input_gradient) {
  using enum activation;
  switch (kind) {
  case tanh:
    return map(on, input_gradient, gradient_of<tanh>{}, output, output_gradient);
  case relu:
    return map(on, input_gradient, gradient_of<relu>{}, output, output_gradient);
  case sigmoid:
    return map(on, input_gradient, gradient_of<sigmoid>{}, output, output_gradient);
  case gelu:
    return map(on, input_gradient, gradient_of<gelu>{}, input, output_gradient);
  case exp:
    return map(on, input_gradient, gradient_of<exp>{}, output, output_gradient);
  case log:
    return map(on, input_gradient, gradient_of<log>{}, input, output_gradient);
  }
  TROUPE_ASSERT(false, static_cast<int>(kind));
}

template void activate(const context&, activation, std::span<const float>, std::span<float>);
template void activate(const context&, activation, std::span<const double>, std::span<double>);
template void activate_gradient(const context&, activation, std::span<const float>,
                                std::span<const float>, std::span<const float>, std::span<float>);
template void activate_gradient(const context&, activation, std::span<const double>,
                                std::span<const double>, std::span<const double>,
                                std::span<double>);

} // namespace troupe::cuda
