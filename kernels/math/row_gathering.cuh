// SPDX-License-Identifier: Apache-2.0
// A `sparse_sum` as kernels on a GPU read it: its order lies in memory of the device.
#pragma once

#include "kernels/math/gathered.cuh"
#include "kernels/math/sparse.hpp"
#include "kernels/tensor/gradient_sum.hpp"

#include <cstddef>
#include <memory>

namespace troupe::cuda {

/// The values of one source.
struct row_values {
  const void* data;
  dtype type;
};

/// A `sparse_sum`; its combined rows one after the other are elements [0, element_count()).
template <class T>
struct gathered_rows {
  const row_values* sources;
  const row_entry* entries;
  const size_t* starts;
  size_t distinct;
  size_t width;
  T divisor;
  T scale;
  T limit;
  bool divides_by_count;
  const double* scale_there;

  [[nodiscard]] size_t element_count() const { return distinct * width; }

  /// The element of the table that element i of the combined rows belongs to.
  [[nodiscard]] __device__ size_t place(size_t i) const {
    return static_cast<size_t>(entries[starts[i / width]].index) * width + i % width;
  }

  /// Element i of the combined rows.
  [[nodiscard]] __device__ T combined(size_t i) const {
    T sum{};
    size_t holders = 0; // sources that hold the index
    uint32_t last = 0;
    for_values(i, [&](uint32_t source, T value) {
      sum = holders == 0 ? value : sum + value;
      holders += holders == 0 || source != last ? 1 : 0;
      last = source;
    });
    T sum_divisor = divides_by_count ? static_cast<T>(holders) : divisor;
    return limited(sum / sum_divisor * scale_of(scale, scale_there), limit);
  }

private:
  /// Values that are on their way at once: a word that half of all texts hold has rows by the
  /// hundred, and each of them takes as long as the memory is far.
  static constexpr unsigned at_once = 16;

  /// Calls `take(source, value)` with element i of each row that is to be combined, in their order.
  template <class Take>
  __device__ void for_values(size_t i, const Take& take) const {
    size_t end = starts[i / width + 1];
    for (size_t first = starts[i / width]; first < end; first += at_once) {
      row_entry taken[at_once]{};
      T values[at_once]{};
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        if (first + k < end) taken[k] = entries[first + k];
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        if (first + k < end)
          values[k] = element(sources[taken[k].source], taken[k].row * width + i % width);
#pragma unroll
      for (unsigned k = 0; k < at_once; ++k)
        if (first + k < end) take(taken[k].source, values[k]);
    }
  }

  [[nodiscard]] __device__ static T element(const row_values& source, size_t i) {
    switch (source.type) {
    case dtype::f32:
      return widen<T>(static_cast<const float*>(source.data)[i]);
    case dtype::f64:
      return widen<T>(static_cast<const double*>(source.data)[i]);
    case dtype::f16:
      return widen<T>(static_cast<const float16*>(source.data)[i]);
    default:
      return widen<T>(static_cast<const bfloat16*>(source.data)[i]);
    }
  }
};

/// `gathered_rows`, and the memory that they refer to.
template <class T>
struct row_gathering {
  gathered_rows<T> from;
  std::shared_ptr<std::byte> sources;
  std::shared_ptr<std::byte> entries;
  std::shared_ptr<std::byte> starts;
};

/// Copies the order and the places of the sources to the device. No rows after a failure.
template <class T>
[[nodiscard]] row_gathering<T> gather_rows(const context& on, const sparse_sum& gradient);

extern template row_gathering<float> gather_rows(const context&, const sparse_sum&);
extern template row_gathering<double> gather_rows(const context&, const sparse_sum&);

} // namespace troupe::cuda
