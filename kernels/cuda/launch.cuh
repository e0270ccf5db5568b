// SPDX-License-Identifier: Apache-2.0
// Starting kernels, and the loop that every one of them is. No `<<<>>>`: so a plain C++ compiler
// reads these files as well, and the emulator of the tests executes them.
#pragma once

#include "kernels/cuda/check.cuh"
#include "kernels/cuda/context.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>

/// An array that the threads of a block share: `TROUPE_SHARED(double, tile, [4][256]);`. The
/// emulator has its own.
#if !defined(TROUPE_SHARED)
#  define TROUPE_SHARED(type, name, ...) __shared__ type name __VA_ARGS__
#endif

/// Few on the emulator, so that every kernel's loop comes around again.
#if !defined(TROUPE_GRID_BLOCKS_MAX)
#  define TROUPE_GRID_BLOCKS_MAX 32768
#endif

namespace troupe::cuda {

/// Threads of a block of the kernels that go over elements.
inline constexpr unsigned block_threads = 256;

/// Blocks that a grid has at most: thirty times what runs at once on the largest devices, so that
/// the last of these waves, which need not be full, is a few hundredths of the time. Each kernel
/// loops over the rest, so that results and tests depend on no device's size.
inline constexpr size_t grid_blocks_max = TROUPE_GRID_BLOCKS_MAX;

/// Bytes of arguments that a kernel has on every device.
inline constexpr size_t argument_bytes_max = 4096;

/// Blocks for `count` things of which each block does `per_block` at a time.
[[nodiscard]] inline unsigned blocks_for(size_t count, size_t per_block) {
  return static_cast<unsigned>(
    std::clamp<size_t>((count + per_block - 1) / per_block, 1, grid_blocks_max));
}

/// Queues a kernel with these arguments, and keeps the failure, if there is one, in the context.
template <class... Parameters, class... Arguments>
void launch(const context& on, unsigned blocks, unsigned threads, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  if (!on.status() || !on.note(detail::use(on.device().index))) return;
  std::tuple<Parameters...> values{arguments...};
  auto pointers = std::apply(
    [](auto&... each) { return std::array<void*, sizeof...(each)>{&each...}; }, values);
  on.note(TROUPE_CHECK_CUDA(cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), pointers.data(),
                                             0, on.stream().handle())));
}

/// This thread among all of the grid.
__device__ inline size_t thread_of_grid() {
  return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

/// All threads of the grid.
__device__ inline size_t threads_of_grid() {
  return static_cast<size_t>(gridDim.x) * blockDim.x;
}

/// `body(i)` for all i below `count`.
template <class Body>
__global__ void __launch_bounds__(block_threads) each_kernel(size_t count, Body body) {
  for (size_t i = thread_of_grid(); i < count; i += threads_of_grid())
    body(i);
}

/// Queues `body(i)` for all i below `count`, in any order, on threads of their own.
template <class Body>
void for_each(const context& on, size_t count, const Body& body) {
  if (count == 0) return;
  launch(on, blocks_for(count, block_threads), block_threads, each_kernel<Body>, count, body);
}

} // namespace troupe::cuda
