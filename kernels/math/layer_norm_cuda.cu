// SPDX-License-Identifier: Apache-2.0
// Layer normalisation on a GPU.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/math/layer_norm.hpp"

#include <cmath>

namespace troupe::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(block_threads)
  layer_norm_kernel(size_t rows, size_t all_columns, T epsilon, const T* input, const T* gain,
                    const T* bias, T* output, T* means, T* inverse_deviations) {
  for_rows(rows, all_columns, [=](size_t row, size_t columns) {
    const T* from = input + row * all_columns;
    T* to = output + row * all_columns;
    auto count = static_cast<T>(all_columns);
    T mean = sum_row<T>(columns, [=](size_t i) { return from[i]; }) / count;
    T variance
      = sum_row<T>(columns, [=](size_t i) { return (from[i] - mean) * (from[i] - mean); }) / count;
    T inverse = T{1} / std::sqrt(variance + epsilon);
    for (size_t i = lane_of_row(); i < columns; i += sum_lanes)
      to[i] = (from[i] - mean) * inverse * gain[i] + bias[i];
    if (lane_of_row() != 0 || row >= rows) return;
    means[row] = mean;
    inverse_deviations[row] = inverse;
  });
}

template <class T>
__global__ void __launch_bounds__(block_threads)
  input_gradient_kernel(size_t rows, size_t all_columns, const T* input, const T* gain,
                        const T* means, const T* inverse_deviations, const T* output_gradient,
                        T* input_gradient) {
  for_rows(rows, all_columns, [=](size_t row, size_t columns) {
    const T* from = input + row * all_columns;
    const T* arriving = output_gradient + row * all_columns;
    T* leaving = input_gradient + row * all_columns;
    auto count = static_cast<T>(all_columns);
    T mean = row < rows ? means[row] : T{0};
    T inverse = row < rows ? inverse_deviations[row] : T{0};
    auto normal = [=](size_t i) { return (from[i] - mean) * inverse; };
    T mean_g = sum_row<T>(columns, [=](size_t i) { return arriving[i] * gain[i]; }) / count;
    T mean_gh
      = sum_row<T>(columns, [=](size_t i) { return arriving[i] * gain[i] * normal(i); }) / count;
    for (size_t i = lane_of_row(); i < columns; i += sum_lanes) {
      T g = arriving[i];
      leaving[i] = (g * gain[i] - mean_g - normal(i) * mean_gh) * inverse;
    }
  });
}

} // namespace

template <class T>
void layer_norm(const context& on, T epsilon, std::span<const T> input,
                const layer_norm_parameters<T>& parameters, std::span<T> output,
                const layer_norm_statistics<T>& statistics) {
  auto rows = statistics.rows();
  auto columns = parameters.gain.size();
  troupe::detail::check_rows(rows, columns, {input.size(), output.size()},
                             {parameters.bias.size()});
  launch(on, blocks_for(rows, rows_at_once), block_threads, layer_norm_kernel<T>, rows, columns,
         epsilon, input.data(), parameters.gain.data(), parameters.bias.data(), output.data(),
         statistics.means.data(), statistics.inverse_deviations.data());
}

template <class T>
void layer_norm_gradient(const context& on, std::span<const T> input, std::span<const T> gain,
                         const layer_norm_statistics<T>& statistics,
                         std::span<const T> output_gradient,
                         const layer_norm_gradients<T>& gradients) {
  auto rows = statistics.rows();
  auto columns = gain.size();
  troupe::detail::check_rows(rows, columns,
                             {input.size(), output_gradient.size(), gradients.input.size()},
                             {gradients.gain.size(), gradients.bias.size()});
  // Before the input's gradient, which may take the place of what this reads.
  auto of_element
    = [from = input.data(), arriving = output_gradient.data(), means = statistics.means.data(),
       inverses = statistics.inverse_deviations.data()] __device__(size_t row, size_t i) {
        T g = arriving[i];
        return std::array<T, 2>{g * ((from[i] - means[row]) * inverses[row]), g};
      };
  sum_columns(on, rows, columns, of_element,
              column_sums<2, T>{{gradients.gain.data(), gradients.bias.data()}});
  launch(on, blocks_for(rows, rows_at_once), block_threads, input_gradient_kernel<T>, rows, columns,
         input.data(), gain.data(), statistics.means.data(), statistics.inverse_deviations.data(),
         output_gradient.data(), gradients.input.data());
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

} // namespace troupe::cuda
