// SPDX-License-Identifier: Apache-2.0
// The activations as loops that become vector instructions.
#include "kernels/math/activations.hpp"

#include "kernels/math/activation_formulas.hpp"
#include "kernels/tensor/parallel.hpp"
#include "messages/errors/assert.hpp"

namespace troupe::cpu {

namespace {

using troupe::detail::activation_constant;

template <class T, class Function>
void for_each(std::span<const T> input, std::span<T> output, Function f) {
  with_widest_vectors([&] {
    const T* from = input.data();
    T* to = output.data();
    for (size_t i = 0; i < output.size(); ++i)
      to[i] = f(from[i]);
  });
}

/// input_gradient[i] = derivative(known[i]) * output_gradient[i], where `known` is input or output.
template <class T, class Function>
void for_each_gradient(std::span<const T> known, std::span<const T> output_gradient,
                       std::span<T> input_gradient, Function derivative) {
  with_widest_vectors([&] {
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
  troupe::detail::visit_activation(kind, [&]<activation f>(activation_constant<f>) {
    for_each(input, output, [](T x) { return troupe::detail::activated<f>(x); });
  });
}

template <class T>
void activate_gradient(const context&, activation kind, std::span<const T> input,
                       std::span<const T> output, std::span<const T> output_gradient,
                       std::span<T> input_gradient) {
  auto n = input.size();
  TROUPE_ASSERT(output.size() == n, output.size(), n);
  TROUPE_ASSERT(output_gradient.size() == n, output_gradient.size(), n);
  TROUPE_ASSERT(input_gradient.size() == n, input_gradient.size(), n);
  troupe::detail::visit_activation(kind, [&]<activation f>(activation_constant<f>) {
    for_each_gradient(troupe::detail::slope_takes_input<f> ? input : output, output_gradient,
                      input_gradient, [](T x) { return troupe::detail::activation_slope<f>(x); });
  });
}

template void activate(const context&, activation, std::span<const float>, std::span<float>);
template void activate(const context&, activation, std::span<const double>, std::span<double>);
template void activate_gradient(const context&, activation, std::span<const float>,
                                std::span<const float>, std::span<const float>, std::span<float>);
template void activate_gradient(const context&, activation, std::span<const double>,
                                std::span<const double>, std::span<const double>,
                                std::span<double>);

} // namespace troupe::cpu
