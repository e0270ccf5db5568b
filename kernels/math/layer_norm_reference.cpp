// SPDX-License-Identifier: Apache-2.0
// Layer normalisation with sums from left to right.
#include "kernels/math/layer_norm.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::reference {

namespace {

template <class T, class Function>
T row_sum(size_t columns, Function f) {
  T sum = 0;
  for (size_t i = 0; i < columns; ++i)
    sum += f(i);
  return sum;
}

} // namespace

template <class T>
void layer_norm(const context&, T epsilon, std::span<const T> input,
                const layer_norm_parameters<T>& parameters, std::span<T> output,
                const layer_norm_statistics<T>& statistics) {
  auto rows = statistics.rows();
  auto columns = parameters.gain.size();
  detail::check_rows(rows, columns, {input.size(), output.size()}, {parameters.bias.size()});
  const T* gain = parameters.gain.data();
  const T* bias = parameters.bias.data();
  for (size_t row = 0; row < rows; ++row) {
    const T* from = input.data() + row * columns;
    T* to = output.data() + row * columns;
    T mean = row_sum<T>(columns, [&](size_t i) { return from[i]; }) / static_cast<T>(columns);
    T variance = row_sum<T>(columns, [&](size_t i) { return (from[i] - mean) * (from[i] - mean); })
                 / static_cast<T>(columns);
    T inverse = T{1} / std::sqrt(variance + epsilon);
    for (size_t i = 0; i < columns; ++i)
      to[i] = (from[i] - mean) * inverse * gain[i] + bias[i];
    statistics.means[row] = mean;
    statistics.inverse_deviations[row] = inverse;
  }
}

template <class T>
void layer_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                         const layer_norm_statistics<T>& statistics,
                         std::span<const T> output_gradient,
                         const layer_norm_gradients<T>& gradients) {
  auto rows = statistics.rows();
  auto columns = gain.size();
  detail::check_rows(rows, columns, {input.size(), output_gradient.size(), gradients.input.size()},
                     {gradients.gain.size(), gradients.bias.size()});
  std::fill(gradients.gain.begin(), gradients.gain.end(), T{0});
  std::fill(gradients.bias.begin(), gradients.bias.end(), T{0});
  for (size_t row = 0; row < rows; ++row) {
    const T* from = input.data() + row * columns;
    const T* arriving = output_gradient.data() + row * columns;
    T* leaving = gradients.input.data() + row * columns;
    T* gain_sum = gradients.gain.data();
    T* bias_sum = gradients.bias.data();
    T mean = statistics.means[row];
    T inverse = statistics.inverse_deviations[row];
    auto normal = [&](size_t i) { return (from[i] - mean) * inverse; };
    T mean_g = row_sum<T>(columns, [&](size_t i) { return arriving[i] * gain[i]; })
               / static_cast<T>(columns);
    T mean_gh = row_sum<T>(columns, [&](size_t i) { return arriving[i] * gain[i] * normal(i); })
                / static_cast<T>(columns);
    for (size_t i = 0; i < columns; ++i) {
      T g = arriving[i];
      T h = normal(i);
      gain_sum[i] += g * h;
      bias_sum[i] += g;
      leaving[i] = (g * gain[i] - mean_g - h * mean_gh) * inverse;
    }
  }
}

template void layer_norm(const context&, float, std::span<const float>,
                         const layer_norm_parameters<float>&, std::span<float>,
                         const layer_norm_statistics<float>&);
template void layer_norm(const context&, double, std::span<const double>,
                         const layer_norm_parameters<double>&, std::span<double>,
                         const layer_norm_statistics<double>&);
template void layer_norm_gradient(const context&, std::span<const float>, std::span<const float>,
                                  const layer_norm_statistics<float>&, std::span<const float>,
                                  const layer_norm_gradients<float>&);
template void layer_norm_gradient(const context&, std::span<const double>, std::span<const double>,
                                  const layer_norm_statistics<double>&, std::span<const double>,
                                  const layer_norm_gradients<double>&);

} // namespace troupe::reference
