// SPDX-License-Identifier: Apache-2.0
// The activations as loops that become vector instructions.
#include "kernels/activations.hpp"

#include "kernels/parallel.hpp"
#include "kernels/vector_math.hpp"
#include "messages/assert.hpp"

namespace troupe::cpu {

namespace {

constexpr double sqrt_2_over_pi = 0.79788456080286535588;
constexpr double cubic = 0.044715;

template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + detail::exp(-x));
}

template <class T>
T gelu_argument(T x) {
  return static_cast<T>(2 * sqrt_2_over_pi) * (x + static_cast<T>(cubic) * x * x * x);
}

template <class T>
T gelu_derivative(T x) {
  auto s = sigmoid(gelu_argument(x));
  auto slope = static_cast<T>(2 * sqrt_2_over_pi) * (T{1} + static_cast<T>(3 * cubic) * x * x);
  return s + x * slope * s * (T{1} - s);
}

/// One loop for each function, so that the choice between them stays outside of it.
template <class T, class Function>
void for_each(std::span<const T> input, std::span<T> output, Function f) {
  vectorised([&] {
    const T* from = input.data();
    T* to = output.data();
    for (size_t i = 0; i < output.size(); ++i)
      to[i] = f(from[i]);
  });
}

/// result[i] = derivative(known[i]) * result_gradient[i], where `known` is input or output.
template <class T, class Function>
void for_each_gradient(std::span<const T> known, std::span<const T> output_gradient,
                       std::span<T> input_gradient, Function derivative) {
  vectorised([&] {
    const T* at = known.data();
    const T* from = output_gradient.data();
    T* to = input_gradient.data();
    for (size_t i = 0; i < input_gradient.size(); ++i)
      to[i] = derivative(at[i]) * from[i];
  });
}

} // namespace

template <class T>
void activate(const context&, activation kind, std::span<const T> input, std::span<T> output) {
  TROUPE_ASSERT(input.size() == output.size(), input.size(), output.size());
  switch (kind) {
  case activation::tanh:
    return for_each(input, output, [](T x) { return detail::tanh(x); });
  case activation::relu:
    return for_each(input, output, [](T x) { return x < 0 ? T{0} : x; });
  case activation::sigmoid:
    return for_each(input, output, [](T x) { return sigmoid(x); });
  case activation::gelu:
    return for_each(input, output, [](T x) { return x * sigmoid(gelu_argument(x)); });
  }
  TROUPE_ASSERT(false, static_cast<int>(kind));
}

template <class T>
void activate_gradient(const context&, activation kind, std::span<const T> input,
                       std::span<const T> output, std::span<const T> output_gradient,
                       std::span<T> input_gradient) {
  auto n = input.size();
  TROUPE_ASSERT(output.size() == n, output.size(), n);
  TROUPE_ASSERT(output_gradient.size() == n, output_gradient.size(), n);
  TROUPE_ASSERT(input_gradient.size() == n, input_gradient.size(), n);
  switch (kind) {
  case activation::tanh:
    return for_each_gradient(output, output_gradient, input_gradient,
                             [](T y) { return T{1} - y * y; });
  case activation::relu:
    return for_each_gradient(output, output_gradient, input_gradient,
                             [](T y) { return y <= 0 ? T{0} : T{1}; });
  case activation::sigmoid:
    return for_each_gradient(output, output_gradient, input_gradient,
                             [](T y) { return y * (T{1} - y); });
  case activation::gelu:
    return for_each_gradient(input, output_gradient, input_gradient,
                             [](T x) { return gelu_derivative(x); });
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

} // namespace troupe::cpu
