// SPDX-License-Identifier: Apache-2.0
// Root mean square normalisation, with sums from left to right.
#include "kernels/math/rms_norm.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::reference {

template <class T>
void rms_norm(const context&, T epsilon, std::span<const T> input, std::span<const T> gain,
              std::span<T> output, std::span<T> inverse_roots) {
  auto rows = inverse_roots.size();
  auto columns = gain.size();
  detail::check_rows(rows, columns, {input.size(), output.size()}, {});
  for (size_t row = 0; row < rows; ++row) {
    T squares = 0;
    for (T value : input.subspan(row * columns, columns))
      squares += value * value;
    inverse_roots[row] = T{1} / std::sqrt(squares / static_cast<T>(columns) + epsilon);
    for (size_t i = 0; i < columns; ++i)
      output[row * columns + i] = input[row * columns + i] * inverse_roots[row] * gain[i];
  }
}

template <class T>
void rms_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                       std::span<const T> inverse_roots, std::span<const T> output_gradient,
                       std::span<T> input_gradient, std::span<T> gain_gradient) {
  auto rows = inverse_roots.size();
  auto columns = gain.size();
  detail::check_rows(rows, columns, {input.size(), output_gradient.size(), input_gradient.size()},
                     {gain_gradient.size()});
  std::ranges::fill(gain_gradient, T{0});
  for (size_t row = 0; row < rows; ++row) {
    T inverse = inverse_roots[row];
    T sum = 0;
    for (size_t i = 0, at = row * columns; i < columns; ++i, ++at) {
      gain_gradient[i] += output_gradient[at] * (input[at] * inverse);
      sum += output_gradient[at] * gain[i] * (input[at] * inverse);
    }
    T mean = sum / static_cast<T>(columns);
    for (size_t i = 0, at = row * columns; i < columns; ++i, ++at)
      input_gradient[at] = (output_gradient[at] * gain[i] - input[at] * inverse * mean) * inverse;
  }
}

template void rms_norm(const context&, float, std::span<const float>, std::span<const float>,
                       std::span<float>, std::span<float>);
template void rms_norm(const context&, double, std::span<const double>, std::span<const double>,
                       std::span<double>, std::span<double>);
template void rms_norm_gradient(const context&, std::span<const float>, std::span<const float>,
                                std::span<const float>, std::span<const float>, std::span<float>,
                                std::span<float>);
template void rms_norm_gradient(const context&, std::span<const double>, std::span<const double>,
                                std::span<const double>, std::span<const double>, std::span<double>,
                                std::span<double>);

} // namespace troupe::reference
