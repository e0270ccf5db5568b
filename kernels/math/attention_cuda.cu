// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU.
#include "kernels/cuda/rows.cuh"
#include "kernels/math/attention.hpp"
#include "kernels/tensor/vector_math.hpp"
#include "messages/assert.hpp"

#include <cmath>
#include <limits>

namespace troupe::cuda {

namespace {

/// One position of one head, and all positions of its sequence.
template <class T>
struct attention_row {
  size_t first;    ///< Position 0 of the sequence, among those of all sequences.
  size_t column;   ///< Where the head begins in a position.
  size_t position; ///< In the sequence.
  size_t width;
  size_t head_width;

  __device__ attention_row(const attention_extents& extents, size_t row)
    : first(row / extents.context / extents.heads * extents.context),
      column(row / extents.context % extents.heads * extents.head_width),
      position(row % extents.context), width(extents.heads * extents.head_width),
      head_width(extents.head_width) {}

  /// Where a part (0 queries, 1 keys, 2 values) of a position begins in `packed`.
  [[nodiscard]] __device__ size_t part(size_t which, size_t at) const {
    return ((first + at) * 3 + which) * width + column;
  }

  /// Where the head begins in an output.
  [[nodiscard]] __device__ size_t output(size_t at) const { return (first + at) * width + column; }

  /// The product of two vectors as long as the head.
  [[nodiscard]] __device__ T dot(const T* a, const T* b) const {
    return sum_row<T>(head_width, [=](size_t i) { return a[i] * b[i]; });
  }
};

// The threads of a row meet at every product, and two rows share a warp: so all rows look at all
// positions, and leave out those that do not count. `rows` is a multiple of nothing, so that the
// last threads repeat row 0 and write nothing.

template <class T>
__global__ void __launch_bounds__(block_threads)
  attention_kernel(attention_extents extents, size_t rows, T scale, const T* packed, T* output,
                   T* log_sums) {
  for_rows(rows, 1, [=](size_t row, size_t is_there) {
    const attention_row<T> at{extents, is_there != 0 ? row : 0};
    const T* query = packed + at.part(0, at.position);
    T* out = output + at.output(at.position);
    auto score = [=](size_t key) { return at.dot(query, packed + at.part(1, key)) * scale; };
    T largest = -std::numeric_limits<T>::infinity();
    for (size_t key = 0; key < extents.context; ++key) {
      T found = score(key);
      if (key <= at.position && found > largest) largest = found;
    }
    if (is_there != 0)
      for (size_t i = lane_of_row(); i < at.head_width; i += sum_lanes)
        out[i] = 0;
    T sum = 0;
    for (size_t key = 0; key < extents.context; ++key) {
      T weight = cpu::detail::exp(score(key) - largest);
      if (is_there == 0 || key > at.position) continue;
      const T* value = packed + at.part(2, key);
      sum += weight;
      for (size_t i = lane_of_row(); i < at.head_width; i += sum_lanes)
        out[i] += weight * value[i];
    }
    if (is_there == 0) return;
    for (size_t i = lane_of_row(); i < at.head_width; i += sum_lanes)
      out[i] /= sum;
    if (lane_of_row() == 0) log_sums[row] = largest + std::log(sum);
  });
}

/// What the backward pass is given, on the device.
template <class T>
struct attention_memory {
  const T* packed;
  const T* output;
  const T* log_sums;
  const T* output_gradient;
  T* packed_gradient;
};

/// The weight of a key for a query, and the gradient of their product.
template <class T>
struct weight_and_gradient {
  T weight;
  T gradient;

  __device__ weight_and_gradient(const attention_memory<T>& in, const attention_row<T>& at,
                                 const T* log_sums, size_t query, size_t key, T scale) {
    const T* arriving = in.output_gradient + at.output(query);
    T score = at.dot(in.packed + at.part(0, query), in.packed + at.part(1, key)) * scale;
    T by_weight = at.dot(arriving, in.packed + at.part(2, key));
    T mean = at.dot(arriving, in.output + at.output(query));
    weight = cpu::detail::exp(score - log_sums[query]);
    gradient = weight * (by_weight - mean) * scale;
  }
};

template <class T>
__global__ void __launch_bounds__(block_threads)
  query_gradient_kernel(attention_extents extents, size_t rows, T scale, attention_memory<T> in) {
  for_rows(rows, 1, [=](size_t row, size_t is_there) {
    const attention_row<T> at{extents, is_there != 0 ? row : 0};
    const T* log_sums = in.log_sums + (is_there != 0 ? row - at.position : 0);
    T* to = in.packed_gradient + at.part(0, at.position);
    if (is_there != 0)
      for (size_t i = lane_of_row(); i < at.head_width; i += sum_lanes)
        to[i] = 0;
    for (size_t key = 0; key < extents.context; ++key) {
      const weight_and_gradient<T> found{in, at, log_sums, at.position, key, scale};
      if (is_there == 0 || key > at.position) continue;
      const T* from = in.packed + at.part(1, key);
      for (size_t i = lane_of_row(); i < at.head_width; i += sum_lanes)
        to[i] += found.gradient * from[i];
    }
  });
}

template <class T>
__global__ void __launch_bounds__(block_threads)
  key_gradient_kernel(attention_extents extents, size_t rows, T scale, attention_memory<T> in) {
  for_rows(rows, 1, [=](size_t row, size_t is_there) {
    const attention_row<T> at{extents, is_there != 0 ? row : 0};
    const T* log_sums = in.log_sums + (is_there != 0 ? row - at.position : 0);
    T* to_key = in.packed_gradient + at.part(1, at.position);
    T* to_value = in.packed_gradient + at.part(2, at.position);
    if (is_there != 0)
      for (size_t i = lane_of_row(); i < at.head_width; i += sum_lanes)
        to_key[i] = to_value[i] = 0;
    for (size_t query = 0; query < extents.context; ++query) {
      const weight_and_gradient<T> found{in, at, log_sums, query, at.position, scale};
      if (is_there == 0 || query < at.position) continue;
      const T* from = in.packed + at.part(0, query);
      const T* arriving = in.output_gradient + at.output(query);
      for (size_t i = lane_of_row(); i < at.head_width; i += sum_lanes) {
        to_key[i] += found.gradient * from[i];
        to_value[i] += found.weight * arriving[i];
      }
    }
  });
}

} // namespace

template <class T>
void causal_self_attention(const context& on, const attention_extents& extents,
                           std::span<const T> packed, std::span<T> output, std::span<T> log_sums) {
  auto elements = extents.positions() * extents.width();
  auto rows = extents.positions() * extents.heads;
  TROUPE_ASSERT(packed.size() == 3 * elements, packed.size(), elements);
  TROUPE_ASSERT(output.size() == elements, output.size(), elements);
  TROUPE_ASSERT(log_sums.size() == rows, log_sums.size(), rows);
  if (rows == 0) return;
  launch(on, blocks_for(rows, rows_at_once), block_threads, attention_kernel<T>, extents, rows,
         static_cast<T>(extents.scale()), packed.data(), output.data(), log_sums.data());
}

template <class T>
void causal_self_attention_gradient(const context& on, const attention_extents& extents,
                                    std::span<const T> packed, const attention_outcome<T>& forward,
                                    std::span<const T> output_gradient,
                                    std::span<T> packed_gradient) {
  auto elements = extents.positions() * extents.width();
  auto rows = extents.positions() * extents.heads;
  TROUPE_ASSERT(packed.size() == 3 * elements, packed.size(), elements);
  TROUPE_ASSERT(forward.output.size() == elements, forward.output.size(), elements);
  TROUPE_ASSERT(forward.log_sums.size() == rows, forward.log_sums.size(), rows);
  TROUPE_ASSERT(output_gradient.size() == elements, output_gradient.size(), elements);
  TROUPE_ASSERT(packed_gradient.size() == 3 * elements, packed_gradient.size(), elements);
  if (rows == 0) return;
  const attention_memory<T> memory{packed.data(), forward.output.data(), forward.log_sums.data(),
                                   output_gradient.data(), packed_gradient.data()};
  auto scale = static_cast<T>(extents.scale());
  for (auto* kernel : {query_gradient_kernel<T>, key_gradient_kernel<T>})
    launch(on, blocks_for(rows, rows_at_once), block_threads, kernel, extents, rows, scale, memory);
}

template void causal_self_attention(const context&, const attention_extents&,
                                    std::span<const float>, std::span<float>, std::span<float>);
template void causal_self_attention(const context&, const attention_extents&,
                                    std::span<const double>, std::span<double>, std::span<double>);
template void causal_self_attention_gradient(const context&, const attention_extents&,
                                             std::span<const float>,
                                             const attention_outcome<float>&,
                                             std::span<const float>, std::span<float>);
template void causal_self_attention_gradient(const context&, const attention_extents&,
                                             std::span<const double>,
                                             const attention_outcome<double>&,
                                             std::span<const double>, std::span<double>);

} // namespace troupe::cuda
