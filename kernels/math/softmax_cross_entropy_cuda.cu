// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy on a GPU.
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/math/softmax_cross_entropy.hpp"
#include "kernels/tensor/vector_math.hpp"

#include <cmath>
#include <limits>

namespace troupe::cuda {

namespace {

template <class T>
__global__ void __launch_bounds__(block_threads)
  softmax_kernel(size_t rows, size_t classes, const T* logits, const int64_t* labels, T* losses,
                 T* probabilities) {
  for_rows(rows, classes, [=](size_t row, size_t columns) {
    const T* in = logits + row * classes;
    T* out = probabilities + row * classes;
    T largest = -std::numeric_limits<T>::infinity();
    for (size_t i = lane_of_row(); i < columns; i += sum_lanes)
      largest = largest > in[i] ? largest : in[i];
    largest = join_row(largest, [](T a, T b) { return a > b ? a : b; });
    // The label's logit now: the probabilities may take its place.
    auto label = row < rows ? static_cast<size_t>(labels[row]) : 0;
    T at_label = label < columns ? in[label] : std::numeric_limits<T>::quiet_NaN();
    at_label = __shfl_sync(0xffffffff, at_label, 0, sum_lanes);
    __syncwarp(); // a shuffle puts no reads before writes
    T sum
      = sum_row<T>(columns, [=](size_t i) { return out[i] = cpu::detail::exp(in[i] - largest); });
    T scale = T{1} / sum;
    for (size_t i = lane_of_row(); i < columns; i += sum_lanes)
      out[i] *= scale;
    if (lane_of_row() == 0 && row < rows) losses[row] = std::log(sum) - (at_label - largest);
  });
}

/// The gradient of the logits.
template <class T>
struct logits_differentiation {
  const T* probabilities;
  const int64_t* labels;
  const T* losses_gradient;
  T* logits_gradient;

  template <size_t width>
  __device__ void work_on(const packet_place& here) const {
    auto values = load<width>(probabilities, here.index);
    auto label = static_cast<size_t>(labels[here.row]);
    T scale = losses_gradient[here.row];
    for (size_t k = 0; k < width; ++k) {
      bool is_label = here.in_row * width + k == label;
      values.values[k] = (is_label ? values.values[k] - 1 : values.values[k]) * scale;
    }
    store(logits_gradient, here.index, values);
  }
};

} // namespace

template <class T>
void softmax_cross_entropy(const context& on, std::span<const T> logits,
                           std::span<const int64_t> labels, std::span<T> losses,
                           std::span<T> probabilities) {
  auto rows = labels.size();
  auto classes
    = troupe::detail::classes_of(rows, losses.size(), logits.size(), probabilities.size());
  if (rows == 0) return;
  launch(on, blocks_for(rows, rows_at_once), block_threads, softmax_kernel<T>, rows, classes,
         logits.data(), labels.data(), losses.data(), probabilities.data());
}

template <class T>
void softmax_cross_entropy_gradient(const context& on, std::span<const T> probabilities,
                                    std::span<const int64_t> labels,
                                    std::span<const T> losses_gradient,
                                    std::span<T> logits_gradient) {
  auto classes = troupe::detail::classes_of(labels.size(), losses_gradient.size(),
                                            probabilities.size(), logits_gradient.size());
  if (labels.empty()) return;
  bool aligned = are_aligned(packet_bytes, probabilities.data(), logits_gradient.data());
  for_packets<T>(on, labels.size(), classes, aligned,
                 logits_differentiation<T>{probabilities.data(), labels.data(),
                                           losses_gradient.data(), logits_gradient.data()});
}

template void softmax_cross_entropy(const context&, std::span<const float>,
                                    std::span<const int64_t>, std::span<float>, std::span<float>);
template void softmax_cross_entropy(const context&, std::span<const double>,
                                    std::span<const int64_t>, std::span<double>, std::span<double>);
template void softmax_cross_entropy_gradient(const context&, std::span<const float>,
                                             std::span<const int64_t>, std::span<const float>,
                                             std::span<float>);
template void softmax_cross_entropy_gradient(const context&, std::span<const double>,
                                             std::span<const int64_t>, std::span<const double>,
                                             std::span<double>);

} // namespace troupe::cuda
