// SPDX-License-Identifier: Apache-2.0
// Layer normalisation with vectorised sums.
#include "kernels/math/layer_norm.hpp"

#include "kernels/tensor/parallel.hpp"
#include "kernels/tensor/vector_math.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::cpu {

namespace {

/// The mean of f(0), f(1), ... over a row. Functions capture by value: what they refer to would be
/// read from memory for each element.
template <class T, class Function>
T row_mean(size_t columns, Function f) {
  return detail::sum_lanes<T>(columns, f) / static_cast<T>(columns);
}

} // namespace

template <class T>
void layer_norm(const context&, T epsilon, std::span<const T> input,
                const layer_norm_parameters<T>& parameters, std::span<T> output,
                const layer_norm_statistics<T>& statistics) {
  auto rows = statistics.rows();
  auto columns = parameters.gain.size();
  troupe::detail::check_rows(rows, columns, {input.size(), output.size()},
                             {parameters.bias.size()});
  const T* gain = parameters.gain.data();
  const T* bias = parameters.bias.data();
  with_widest_vectors([=] {
    for (size_t row = 0; row < rows; ++row) {
      const T* from = input.data() + row * columns;
      T* to = output.data() + row * columns;
      T mean = row_mean<T>(columns, [=](size_t i) { return from[i]; });
      T variance
        = row_mean<T>(columns, [=](size_t i) { return (from[i] - mean) * (from[i] - mean); });
      T inverse = T{1} / std::sqrt(variance + epsilon);
      TROUPE_INDEPENDENT
      for (size_t i = 0; i < columns; ++i)
        to[i] = (from[i] - mean) * inverse * gain[i] + bias[i];
      statistics.means[row] = mean;
      statistics.inverse_deviations[row] = inverse;
    }
  });
}

template <class T>
void layer_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                         const layer_norm_statistics<T>& statistics,
                         std::span<const T> output_gradient,
                         const layer_norm_gradients<T>& gradients) {
  auto rows = statistics.rows();
  auto columns = gain.size();
  troupe::detail::check_rows(rows, columns,
                             {input.size(), output_gradient.size(), gradients.input.size()},
                             {gradients.gain.size(), gradients.bias.size()});
  std::fill(gradients.gain.begin(), gradients.gain.end(), T{0});
  std::fill(gradients.bias.begin(), gradients.bias.end(), T{0});
  with_widest_vectors([=, factors = gain.data()] {
    for (size_t row = 0; row < rows; ++row) {
      const T* from = input.data() + row * columns;
      const T* arriving = output_gradient.data() + row * columns;
      T* leaving = gradients.input.data() + row * columns;
      T* gain_sum = gradients.gain.data();
      T* bias_sum = gradients.bias.data();
      T mean = statistics.means[row];
      T inverse = statistics.inverse_deviations[row];
      auto normal = [=](size_t i) { return (from[i] - mean) * inverse; };
      auto scaled = [=](size_t i) { return arriving[i] * factors[i]; };
      T mean_g = row_mean<T>(columns, scaled);
      T mean_gh = row_mean<T>(columns, [=](size_t i) { return scaled(i) * normal(i); });
      TROUPE_INDEPENDENT
      for (size_t i = 0; i < columns; ++i) {
        T g = arriving[i];
        T h = normal(i);
        gain_sum[i] += g * h;
        bias_sum[i] += g;
        leaving[i] = (g * factors[i] - mean_g - h * mean_gh) * inverse;
      }
    }
  });
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

} // namespace troupe::cpu
