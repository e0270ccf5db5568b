// SPDX-License-Identifier: Apache-2.0
// Copies as one row of chunks, which the blocks share.
#include "kernels/cuda/array_copies.hpp"
#include "kernels/cuda/packet.cuh"
#include "kernels/tensor/host_device.hpp"

#include <cstdint>

namespace troupe::cuda {

namespace {

/// Arrays that one kernel copies; they travel as its argument.
constexpr size_t copies_at_once = 64;

/// Bytes that a block copies at a time.
constexpr size_t chunk_bytes = 32768;

struct copy_list {
  array_copy copies[copies_at_once];
  size_t ends[copies_at_once]; ///< Chunks of this copy and of all before it.
  size_t count = 0;

  [[nodiscard]] TROUPE_HOST_DEVICE size_t chunks() const { return ends[count - 1]; }
};

/// Copies the bytes [begin, end) as whole elements of T.
template <class T>
__device__ void copy_chunk(const array_copy& copy, size_t begin, size_t end) {
  const auto* from = static_cast<const T*>(copy.from);
  auto* to = static_cast<T*>(copy.to);
  for (size_t i = begin / sizeof(T) + threadIdx.x; i < end / sizeof(T); i += block_threads)
    to[i] = from[i];
}

__global__ void __launch_bounds__(block_threads) copy_kernel(copy_list list) {
  using whole = packet<uint32_t, packet_bytes / sizeof(uint32_t)>;
  size_t at = 0;
  for (size_t chunk = blockIdx.x; chunk < list.chunks(); chunk += gridDim.x) {
    while (list.ends[at] <= chunk)
      ++at;
    const auto& copy = list.copies[at];
    size_t begin = (chunk - (at == 0 ? 0 : list.ends[at - 1])) * chunk_bytes;
    size_t end = copy.bytes - begin < chunk_bytes ? copy.bytes : begin + chunk_bytes;
    auto places = reinterpret_cast<uintptr_t>(copy.from) | reinterpret_cast<uintptr_t>(copy.to);
    bool is_aligned = places % sizeof(whole) == 0;
    if (is_aligned) copy_chunk<whole>(copy, begin, end);
    copy_chunk<unsigned char>(copy, is_aligned ? end - end % sizeof(whole) : begin, end);
  }
}

} // namespace

void copy_arrays(const context& on, std::span<const array_copy> copies) {
  copy_list list;
  size_t chunks = 0;
  for (size_t i = 0; i < copies.size(); ++i) {
    chunks += (copies[i].bytes + chunk_bytes - 1) / chunk_bytes;
    list.copies[list.count] = copies[i];
    list.ends[list.count++] = chunks;
    if (list.count < copies_at_once && i + 1 < copies.size()) continue;
    if (chunks > 0) launch(on, blocks_for(chunks, 1), block_threads, copy_kernel, list);
    list.count = chunks = 0;
  }
}

} // namespace troupe::cuda
