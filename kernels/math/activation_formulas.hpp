// SPDX-License-Identifier: Apache-2.0
// The activations of one element, for the cpu and cuda twins.
#pragma once

#include "kernels/math/activations.hpp"
#include "kernels/tensor/host_device.hpp"
#include "kernels/tensor/vector_math.hpp"
#include "messages/errors/assert.hpp"

#include <cmath>
#include <type_traits>

namespace troupe::detail {

// x + 0.044715 x^3, times 2 sqrt(2 / pi): factors of x and of x^3.
inline constexpr double gelu_linear = 2 * 0.79788456080286535588;
inline constexpr double gelu_cubic = gelu_linear * 0.044715;

template <class T>
[[nodiscard]] TROUPE_HOST_DEVICE inline T sigmoid(T x) {
  return T{1} / (T{1} + cpu::detail::exp(-x));
}

template <class T>
[[nodiscard]] TROUPE_HOST_DEVICE inline T gelu_argument(T x) {
  return x * std::fma(static_cast<T>(gelu_cubic), x * x, static_cast<T>(gelu_linear));
}

/// A function as a type, for a choice at compile time.
template <activation kind>
using activation_constant = std::integral_constant<activation, kind>;

/// Calls `visitor` with the `activation_constant` of `kind`, so that a loop is of one function.
template <class Visitor>
void visit_activation(activation kind, const Visitor& visitor) {
  using enum activation;
  switch (kind) {
  case tanh:
    return visitor(activation_constant<tanh>{});
  case relu:
    return visitor(activation_constant<relu>{});
  case sigmoid:
    return visitor(activation_constant<sigmoid>{});
  case gelu:
    return visitor(activation_constant<gelu>{});
  case exp:
    return visitor(activation_constant<exp>{});
  case log:
    return visitor(activation_constant<log>{});
  }
  TROUPE_ASSERT(false, static_cast<int>(kind));
}

/// f(x).
template <activation kind, class T>
[[nodiscard]] TROUPE_HOST_DEVICE inline T activated(T x) {
  if constexpr (kind == activation::tanh)
    return cpu::detail::tanh(x);
  else if constexpr (kind == activation::relu)
    return x < 0 ? T{0} : x;
  else if constexpr (kind == activation::sigmoid)
    return sigmoid(x);
  else if constexpr (kind == activation::exp)
    return cpu::detail::exp(x);
  else if constexpr (kind == activation::log)
    return std::log(x);
  else
    return x * sigmoid(gelu_argument(x));
}

/// Whether `activation_slope` takes x: gelu and log; the others take f(x).
template <activation kind>
inline constexpr bool slope_takes_input = kind == activation::gelu || kind == activation::log;

/// f'(x), worked out from x or f(x).
template <activation kind, class T>
[[nodiscard]] TROUPE_HOST_DEVICE inline T activation_slope(T known) {
  if constexpr (kind == activation::tanh) {
    return T{1} - known * known;
  } else if constexpr (kind == activation::relu) {
    return known <= 0 ? T{0} : T{1};
  } else if constexpr (kind == activation::sigmoid) {
    return known * (T{1} - known);
  } else if constexpr (kind == activation::exp) {
    return known;
  } else if constexpr (kind == activation::log) {
    return T{1} / known;
  } else {
    T s = sigmoid(gelu_argument(known));
    T rest = s * (T{1} - s);
    if (rest == 0) return s; // far out, where the slope of u is no number any more
    T slope = std::fma(static_cast<T>(3 * gelu_cubic), known * known, static_cast<T>(gelu_linear));
    return s + known * slope * s * (T{1} - s);
  }
}

} // namespace troupe::detail
