// SPDX-License-Identifier: Apache-2.0
// A `gradient_sum` as kernels on a GPU read it.
#pragma once

#include "kernels/cuda/packet.cuh"
#include "kernels/tensor/gradient_sum.hpp"

#include <cstddef>
#include <memory>

namespace troupe::cuda {

/// Sources that one kernel reads; with more of them, others come first.
inline constexpr size_t gathered_sources_max = 32;

/// Sources of one type that are read before the first of them is added, so that several loads are
/// under way.
inline constexpr unsigned sources_at_once = 4;

/// The sources of a `gradient_sum`, and the numbers by which their sum is finished. Travels as a
/// kernel's argument.
template <class T>
struct gathered {
  const void* data[gathered_sources_max]{};
  dtype types[gathered_sources_max]{};
  unsigned count = 0;
  bool is_finished = true; ///< Whether the sum is divided, scaled and limited.
  T divisor = 1;
  T scale = 1;
  T limit = 0;
  const double* scale_there = nullptr; ///< In place of `scale`, unless null.
};

/// The scale: `*there`, which lies on the device, or `given` if `there` is null.
template <class T>
[[nodiscard]] __device__ T scale_of(T given, const double* there) {
  return there == nullptr ? given : static_cast<T>(*there);
}

/// Adds sources [first, first + size) of type `From` to the sum of a packet.
template <class From, size_t width, class T>
__device__ void add_sources(const gathered<T>& from, unsigned first, unsigned size, size_t at,
                            packet<T, width>& sum) {
  packet<From, width> taken[sources_at_once]{};
#pragma unroll
  for (unsigned k = 0; k < sources_at_once; ++k)
    if (k < size) taken[k] = static_cast<const packet<From, width>*>(from.data[first + k])[at];
#pragma unroll
  for (unsigned k = 0; k < sources_at_once; ++k)
    if (k < size)
      for (size_t i = 0; i < width; ++i)
        sum.values[i] = first + k == 0 ? widen<T>(taken[k].values[i])
                                       : sum.values[i] + widen<T>(taken[k].values[i]);
}

/// Packet `at` of the array that the gradients become.
template <size_t width, class T>
[[nodiscard]] __device__ packet<T, width> combine(const gathered<T>& from, size_t at) {
  packet<T, width> sum{};
  for (unsigned first = 0; first < from.count;) {
    dtype type = from.types[first];
    unsigned size = 1;
    while (size < sources_at_once && first + size < from.count && from.types[first + size] == type)
      ++size;
    if (type == dtype::f32)
      add_sources<float>(from, first, size, at, sum);
    else if (type == dtype::bf16)
      add_sources<bfloat16>(from, first, size, at, sum);
    else if (type == dtype::f16)
      add_sources<float16>(from, first, size, at, sum);
    else if constexpr (sizeof(T) == sizeof(double))
      add_sources<double>(from, first, size, at, sum);
    first += size;
  }
  if (!from.is_finished) return sum;
  T scale = scale_of(from.scale, from.scale_there);
  for (size_t i = 0; i < width; ++i)
    sum.values[i] = limited(sum.values[i] / from.divisor * scale, from.limit);
  return sum;
}

/// Elements of a packet of T and of the sources that belong to it: 16 bytes of the widest.
template <class T>
inline constexpr size_t gathered_width = packet_bytes / sizeof(T);

/// Whether all sources lie so that they can be read in packets.
template <class T>
[[nodiscard]] bool are_aligned(const gathered<T>& from) {
  for (unsigned i = 0; i < from.count; ++i)
    if (!are_aligned(packet_bytes, from.data[i])) return false;
  return true;
}

/// `gathered` sources, and the memory that it refers to beside them.
template <class T>
struct gathering {
  gathered<T> from;
  std::shared_ptr<std::byte> sum_so_far;
};

/// Makes a `gradient_sum` ready for one kernel; with more sources than that reads, queues sums of
/// the first ones. Later work of the stream may use the result as long as it lives.
template <class T>
[[nodiscard]] gathering<T> gather(const context& on, const gradient_sum& gradient);

extern template gathering<float> gather(const context&, const gradient_sum&);
extern template gathering<double> gather(const context&, const gradient_sum&);

} // namespace troupe::cuda
