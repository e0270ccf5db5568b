// SPDX-License-Identifier: Apache-2.0
// Rows by way of the CUDA runtime.
#include "kernels/cuda/row_copy.hpp"

#include "kernels/cuda/check.cuh"

#include <algorithm>
#include <cstddef>

namespace troupe::cuda {

namespace {

/// Largest pitch that CUDA takes (`cudaDeviceProp::memPitch`).
constexpr size_t pitch_max = 0x7fffffff;

} // namespace

expected<void> copy_rows(const stream& on, row_place<const void> from, row_place<void> to,
                         size_t width, size_t rows) {
  if (width == 0 || rows == 0) return {};
  // Pitches have a bound, the size of a copy has none; rows so far apart are few.
  if (rows == 1 || std::max(from.pitch, to.pitch) > pitch_max) {
    const auto* row = static_cast<const std::byte*>(from.first);
    auto* there = static_cast<std::byte*>(to.first);
    for (; rows > 0; --rows, row += from.pitch, there += to.pitch)
      if (auto copied = on.copy(row, there, width); !copied) return copied;
    return {};
  }
  if (auto used = detail::use(on.device_index()); !used) return used;
  return TROUPE_CHECK_CUDA(cudaMemcpy2DAsync(to.first, to.pitch, from.first, from.pitch, width,
                                             rows, cudaMemcpyDefault, on.handle()));
}

} // namespace troupe::cuda
