// SPDX-License-Identifier: Apache-2.0
// Root mean square normalisation with vectorised sums.
#include "kernels/math/rms_norm.hpp"

#include "kernels/tensor/parallel.hpp"
#include "kernels/tensor/vector_math.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::cpu {

template <class T>
void rms_norm(const context&, T epsilon, std::span<const T> input, std::span<const T> gain,
              std::span<T> output, std::span<T> inverse_roots) {
  auto rows = inverse_roots.size();
  auto columns = gain.size();
  troupe::detail::check_rows(rows, columns, {input.size(), output.size()}, {});
  with_widest_vectors([=, factors = gain.data()] {
    for (size_t row = 0; row < rows; ++row) {
      const T* from = input.data() + row * columns;
      T* to = output.data() + row * columns;
      T mean = detail::sum_lanes<T>(columns, [=](size_t i) { return from[i] * from[i]; })
               / static_cast<T>(columns);
      T inverse = T{1} / std::sqrt(mean + epsilon);
      TROUPE_INDEPENDENT
      for (size_t i = 0; i < columns; ++i)
        to[i] = from[i] * inverse * factors[i];
      inverse_roots[row] = inverse;
    }
  });
}

template <class T>
void rms_norm_gradient(const context&, std::span<const T> input, std::span<const T> gain,
                       std::span<const T> inverse_roots, std::span<const T> output_gradient,
                       std::span<T> input_gradient, std::span<T> gain_gradient) {
  auto rows = inverse_roots.size();
  auto columns = gain.size();
  troupe::detail::check_rows(rows, columns,
                             {input.size(), output_gradient.size(), input_gradient.size()},
                             {gain_gradient.size()});
  std::ranges::fill(gain_gradient, T{0});
  with_widest_vectors([=, factors = gain.data(), gain_sum = gain_gradient.data()] {
    for (size_t row = 0; row < rows; ++row) {
      const T* from = input.data() + row * columns;
      const T* arriving = output_gradient.data() + row * columns;
      T* leaving = input_gradient.data() + row * columns;
      T inverse = inverse_roots[row];
      auto product = [=](size_t i) { return arriving[i] * factors[i] * (from[i] * inverse); };
      T mean = detail::sum_lanes<T>(columns, product) / static_cast<T>(columns);
      TROUPE_INDEPENDENT
      for (size_t i = 0; i < columns; ++i) {
        T g = arriving[i];
        T h = from[i] * inverse;
        gain_sum[i] += g * h;
        leaving[i] = (g * factors[i] - h * mean) * inverse;
      }
    }
  });
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

} // namespace troupe::cpu
