// SPDX-License-Identifier: Apache-2.0
// Neighbours in memory that a GPU moves by one instruction.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "messages/errors/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::cuda {

/// Bytes that one thread moves at once, and the alignment that this needs.
inline constexpr size_t packet_bytes = 16;

/// Some elements, moved together.
template <class T, size_t count>
struct alignas(sizeof(T) * count) packet {
  static constexpr size_t size = count;
  T values[count];
};

/// Whether packets may lie at all of these places.
template <class... T>
[[nodiscard]] bool are_aligned(size_t alignment, const T*... at) {
  return ((reinterpret_cast<uintptr_t>(at) % alignment == 0) && ...);
}

/// Packet `i` of an array. By value, so that all of it is one load: behind a reference, the
/// compiler loads each element where it is used.
template <size_t width, class T>
[[nodiscard]] __device__ packet<T, width> load(const T* from, size_t i) {
  return reinterpret_cast<const packet<T, width>*>(from)[i];
}

/// Writes packet `i` of an array.
template <size_t width, class T>
__device__ void store(T* to, size_t i, const packet<T, width>& values) {
  reinterpret_cast<packet<T, width>*>(to)[i] = values;
}

/// An element of the result each, side by side.
template <class T, size_t count, class Function, class... In>
[[nodiscard]] __device__ packet<T, count> map_packet(Function function, packet<In, count>... in) {
  packet<T, count> result;
  for (size_t k = 0; k < count; ++k)
    result.values[k] = function(in.values[k]...);
  return result;
}

/// Packets first, `whole` of them, then what is left.
template <size_t width, class Function, class T, class... In>
__global__ void __launch_bounds__(block_threads)
  map_kernel(size_t whole, size_t count, Function function, T* out, const In*... in) {
  for (size_t i = thread_of_grid(); i < whole; i += threads_of_grid())
    store(out, i, map_packet<T, width>(function, load<width>(in, i)...));
  for (size_t i = whole * width + thread_of_grid(); i < count; i += threads_of_grid())
    out[i] = function(in[i]...);
}

/// Queues out[i] = function(in[i]...). Inputs may be the output itself, or disjoint from it.
template <class T, class Function, class... In>
void map(const context& on, std::span<T> out, Function function, std::span<const In>... in) {
  (TROUPE_ASSERT(in.size() == out.size(), in.size(), out.size()), ...);
  if (out.empty()) return;
  constexpr size_t widest = std::max({sizeof(T), sizeof(In)...});
  constexpr size_t width = packet_bytes / widest;
  bool aligned = are_aligned(packet_bytes, out.data(), in.data()...);
  size_t whole = aligned ? out.size() / width : 0;
  size_t turns = aligned ? whole + 1 : out.size();
  launch(on, blocks_for(turns, block_threads), block_threads, map_kernel<width, Function, T, In...>,
         whole, out.size(), function, out.data(), in.data()...);
}

} // namespace troupe::cuda
