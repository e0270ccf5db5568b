// SPDX-License-Identifier: Apache-2.0
// Sparse gradients as kernels read them: a `sparse_sum` with its order in memory of the device.
#pragma once

#include "kernels/cuda/launch.cuh"
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

  [[nodiscard]] size_t element_count() const { return distinct * width; }

  /// The element of the table that element i of the combined rows belongs to.
  [[nodiscard]] __device__ size_t place(size_t i) const {
    return static_cast<size_t>(entries[starts[i / width]].index) * width + i % width;
  }

  /// Element i of the combined rows.
  [[nodiscard]] __device__ T combined(size_t i) const {
    size_t begin = starts[i / width], end = starts[i / width + 1];
    T sum{};
    size_t holders = 0; // sources that hold the index
    for (size_t at = begin; at < end; ++at) {
      auto entry = entries[at];
      T value = element(sources[entry.source], entry.row * width + i % width);
      sum = at == begin ? value : sum + value;
      holders += at == begin || entries[at - 1].source != entry.source ? 1 : 0;
    }
    T by = divides_by_count ? static_cast<T>(holders) : divisor;
    return limited(sum / by * scale, limit);
  }

  /// `start`, and element i of each row that is to be combined, one after the other.
  [[nodiscard]] __device__ T added_to(T start, size_t i) const {
    for (size_t at = starts[i / width]; at < starts[i / width + 1]; ++at)
      start = start + element(sources[entries[at].source], entries[at].row * width + i % width);
    return start;
  }

private:
  [[nodiscard]] __device__ static T element(const row_values& of, size_t i) {
    switch (of.type) {
    case dtype::f32:
      return widen<T>(static_cast<const float*>(of.data)[i]);
    case dtype::f64:
      return widen<T>(static_cast<const double*>(of.data)[i]);
    case dtype::f16:
      return widen<T>(static_cast<const float16*>(of.data)[i]);
    default:
      return widen<T>(static_cast<const bfloat16*>(of.data)[i]);
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
