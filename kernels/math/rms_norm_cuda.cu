// SPDX-License-Identifier: Apache-2.0
// Root mean square normalisation on a GPU.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/math/rms_norm.hpp"

#include <cmath>

namespace troupe::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(block_threads)
  rms_norm_kernel(size_t rows, size_t all_columns, T epsilon, const T* input, const T* gain,
                  T* output, T* inverse_roots) {
  for_rows(rows, all_columns, [=](size_t row, size_t columns) {
    const T* from = input + row * all_columns;
    T* to = output + row * all_columns;
    T mean = sum_row<T>(columns, [=](size_t i) { return from[i] * from[i]; })
             / static_cast<T>(all_columns);
    T inverse = T{1} / std::sqrt(mean + epsilon);
    for (size_t i = lane_of_row(); i < columns; i += sum_lanes)
      to[i] = from[i] * inverse * gain[i];
    if (lane_of_row() == 0 && row < rows) inverse_roots[row] = inverse;
  });
}

template <class T>
__global__ void __launch_bounds__(block_threads)
  rms_norm_gradient_kernel(size_t rows, size_t all_columns, const T* input, const T* gain,
                           const T* inverse_roots, const T* output_gradient, T* input_gradient) {
  for_rows(rows, all_columns, [=](size_t row, size_t columns) {
    const T* from = input + row * all_columns;
    const T* arriving = output_gradient + row * all_columns;
    T* leaving = input_gradient + row * all_columns;
    T inverse = row < rows ? inverse_roots[row] : T{0};
    T mean
      = sum_row<T>(columns, [=](size_t i) { return arriving[i] * gain[i] * (from[i] * inverse); })
        / static_cast<T>(all_columns);
    for (size_t i = lane_of_row(); i < columns; i += sum_lanes)
      leaving[i] = (arriving[i] * gain[i] - from[i] * inverse * mean) * inverse;
  });
}

} // namespace

template <class T>
void rms_norm(const context& on, T epsilon, std::span<const T> input, std::span<const T> gain,
              std::span<T> output, std::span<T> inverse_roots) {
  auto rows = inverse_roots.size();
  auto columns = gain.size();
  troupe::detail::check_rows(rows, columns, {input.size(), output.size()}, {});
  launch(on, blocks_for(rows, rows_at_once), block_threads, rms_norm_kernel<T>, rows, columns,
         epsilon, input.data(), gain.data(), output.data(), inverse_roots.data());
}

template <class T>
void rms_norm_gradient(const context& on, std::span<const T> input, std::span<const T> gain,
                       std::span<const T> inverse_roots, std::span<const T> output_gradient,
                       std::span<T> input_gradient, std::span<T> gain_gradient) {
  auto rows = inverse_roots.size();
  auto columns = gain.size();
  troupe::detail::check_rows(rows, columns,
                             {input.size(), output_gradient.size(), input_gradient.size()},
                             {gain_gradient.size()});
  // Before the input's gradient, which may take the place of what this reads.
  auto of_element = [from = input.data(), arriving = output_gradient.data(),
                     inverses = inverse_roots.data()] __device__(size_t row, size_t i) {
    return std::array<T, 1>{arriving[i] * (from[i] * inverses[row])};
  };
  sum_columns(on, rows, columns, of_element, column_sums<1, T>{{gain_gradient.data()}});
  launch(on, blocks_for(rows, rows_at_once), block_threads, rms_norm_gradient_kernel<T>, rows,
         columns, input.data(), gain.data(), inverse_roots.data(), output_gradient.data(),
         input_gradient.data());
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

} // namespace troupe::cuda
