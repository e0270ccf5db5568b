// SPDX-License-Identifier: Apache-2.0
// The non-linear functions between layers, element by element, and their derivatives.
#pragma once

#include "kernels/tensor/context.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace troupe {

/// A function from a number to a number.
enum class activation : uint8_t {
  /// Hyperbolic tangent.
  tanh,
  /// max(0, x); NaN stays NaN. The derivative at 0 is 0.
  relu,
  /// 1 / (1 + e^-x).
  sigmoid,
  /// x * sigmoid(2u) with u = sqrt(2 / pi) * (x + 0.044715 x^3), the tanh form.
  /// Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016, section 2.
  gelu,
  /// e to the power x.
  exp,
  /// The natural logarithm: NaN below 0.
  log,
};

/// "tanh", "relu", "sigmoid", "gelu", "exp" or "log".
[[nodiscard]] constexpr std::string_view to_string(activation kind) {
  constexpr std::string_view names[] = {"tanh", "relu", "sigmoid", "gelu", "exp", "log"};
  return names[static_cast<size_t>(kind)];
}

namespace reference {

/// output[i] = f(input[i]).
/// Shape: input   [n]  f32 or f64
///        output  [n]  may be input itself
template <class T>
void activate(const context&, activation kind, std::span<const T> input, std::span<T> output);

/// input_gradient[i] = f'(input[i]) * output_gradient[i].
/// Shape: input            [n]  what `activate` read; gelu and log look at it
///        output           [n]  what `activate` wrote; the others look at it
///        output_gradient  [n]
///        input_gradient   [n]  may be output_gradient itself
template <class T>
void activate_gradient(const context&, activation kind, std::span<const T> input,
                       std::span<const T> output, std::span<const T> output_gradient,
                       std::span<T> input_gradient);

} // namespace reference

namespace cpu {

/// As the reference; exponentials and tangents within 4 units in the last place of it.
template <class T>
void activate(const context&, activation kind, std::span<const T> input, std::span<T> output);

/// As the reference.
template <class T>
void activate_gradient(const context&, activation kind, std::span<const T> input,
                       std::span<const T> output, std::span<const T> output_gradient,
                       std::span<T> input_gradient);

} // namespace cpu

namespace cuda {

/// As the cpu twin: bit for bit in f32, but for log; else within 4 units in the last place.
template <class T>
void activate(const context&, activation kind, std::span<const T> input, std::span<T> output);

/// As the cpu twin: bit for bit in f32, within some roundings in f64, where numbers near 1 may
/// cancel.
template <class T>
void activate_gradient(const context&, activation kind, std::span<const T> input,
                       std::span<const T> output, std::span<const T> output_gradient,
                       std::span<T> input_gradient);

} // namespace cuda

} // namespace troupe
