// SPDX-License-Identifier: Apache-2.0
// The activations in plain loops over the C library's functions.
#include "kernels/math/activations.hpp"

#include "messages/errors/assert.hpp"

#include <cmath>

namespace troupe::reference {

namespace {

constexpr double sqrt_2_over_pi = 0.79788456080286535588;
constexpr double cubic = 0.044715;

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

/// Twice the u of gelu's definition.
template <class T>
T gelu_argument(T x) {
  return static_cast<T>(2 * sqrt_2_over_pi) * (x + static_cast<T>(cubic) * x * x * x);
}

template <class T>
T apply(activation kind, T x) {
  switch (kind) {
  case activation::tanh:
    return std::tanh(x);
  case activation::relu:
    return x < 0 ? 0 : x;
  case activation::sigmoid:
    return sigmoid(x);
  case activation::gelu:
    return x * sigmoid(gelu_argument(x));
  case activation::exp:
    return std::exp(x);
  case activation::log:
    return std::log(x);
  }
  TROUPE_ASSERT(false, static_cast<int>(kind));
  return 0;
}

template <class T>
T derivative(activation kind, T x, T y) {
  switch (kind) {
  case activation::tanh:
    return 1 - y * y;
  case activation::relu:
    return y <= 0 ? 0 : 1;
  case activation::sigmoid:
    return y * (1 - y);
  case activation::gelu: {
    auto s = sigmoid(gelu_argument(x));
    if (s == 0 || s == 1) return s;
    auto slope = static_cast<T>(2 * sqrt_2_over_pi) * (1 + static_cast<T>(3 * cubic) * x * x);
    return s + x * slope * s * (1 - s);
  }
  case activation::exp:
    return y;
  case activation::log:
    return 1 / x;
  }
  TROUPE_ASSERT(false, static_cast<int>(kind));
  return 0;
}

} // namespace

template <class T>
void activate(const context&, activation kind, std::span<const T> input, std::span<T> output) {
  TROUPE_ASSERT(input.size() == output.size(), input.size(), output.size());
  for (size_t i = 0; i < input.size(); ++i)
    output[i] = apply(kind, input[i]);
}

template <class T>
void activate_gradient(const context&, activation kind, std::span<const T> input,
                       std::span<const T> output, std::span<const T> output_gradient,
                       std::span<T> input_gradient) {
  auto n = input.size();
  TROUPE_ASSERT(output.size() == n, output.size(), n);
  TROUPE_ASSERT(output_gradient.size() == n, output_gradient.size(), n);
  TROUPE_ASSERT(input_gradient.size() == n, input_gradient.size(), n);
  for (size_t i = 0; i < n; ++i)
    input_gradient[i] = derivative(kind, input[i], output[i]) * output_gradient[i];
}

template void activate(const context&, activation, std::span<const float>, std::span<float>);
template void activate(const context&, activation, std::span<const double>, std::span<double>);
template void activate_gradient(const context&, activation, std::span<const float>,
                                std::span<const float>, std::span<const float>, std::span<float>);
template void activate_gradient(const context&, activation, std::span<const double>,
                                std::span<const double>, std::span<const double>,
                                std::span<double>);

} // namespace troupe::reference
