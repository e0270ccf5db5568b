// SPDX-License-Identifier: Apache-2.0
// The elements of a matrix on a GPU, for kernels that need the row of each.
#pragma once

#include "kernels/cuda/packet.cuh"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

/// Most packets that are counted in 32 bits; few on the emulator, so that its tests count in 64
/// bits, too.
#if !defined(TROUPE_NARROW_COUNT_MAX)
#  define TROUPE_NARROW_COUNT_MAX std::numeric_limits<uint32_t>::max()
#endif

namespace troupe::cuda {

/// One packet of a matrix: no row begins within a packet.
struct packet_place {
  size_t index; ///< Among all packets of the matrix.
  size_t row;
  size_t in_row; ///< Among the packets of the row.
};

/// `body.work_on<width>(place)` for all packets.
/// @param Index Holds `count`. The division that finds a row takes a dozen instructions of 32 bits;
/// of 64 bits, nvcc looks first whether those would do, and calls a function of a hundred if not.
template <size_t width, class Index, class Body>
__global__ void __launch_bounds__(block_threads)
  matrix_kernel(size_t count, size_t row_packets, Body body) {
  for (size_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    size_t row = static_cast<Index>(i) / static_cast<Index>(row_packets);
    body.template work_on<width>(packet_place{i, row, i - row * row_packets});
  }
}

/// Queues `body.work_on<width>(place)` for all packets of a matrix of T, in any order. They are 16
/// bytes wide where rows are whole packets, else elements.
/// @param aligned Whether packets may lie where the body's arrays begin.
template <class T, class Body>
void for_packets(const context& on, size_t rows, size_t columns, bool aligned, const Body& body) {
  if (rows == 0 || columns == 0) return;
  auto queue = [&]<size_t width>(std::integral_constant<size_t, width>) {
    size_t row_packets = columns / width, count = rows * row_packets;
    auto* kernel = count <= TROUPE_NARROW_COUNT_MAX ? matrix_kernel<width, uint32_t, Body>
                                                    : matrix_kernel<width, uint64_t, Body>;
    launch(on, blocks_for(count, block_threads), block_threads, kernel, count, row_packets, body);
  };
  constexpr size_t widest = packet_bytes / sizeof(T);
  if (aligned && columns % widest == 0)
    queue(std::integral_constant<size_t, widest>{});
  else
    queue(std::integral_constant<size_t, 1>{});
}

} // namespace troupe::cuda
