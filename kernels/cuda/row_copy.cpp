// SPDX-License-Identifier: Apache-2.0
// Rows by way of the CUDA runtime.
#include "kernels/cuda/row_copy.hpp"

#include "kernels/cuda/check.cuh"

namespace troupe::cuda {

expected<void> copy_rows(const stream& on, row_place<const void> from, row_place<void> to,
                         size_t width, size_t rows) {
  if (width == 0 || rows == 0) return {};
  // A pitch has a bound, the size of a copy has none.
  if (rows == 1) return on.copy(from.first, to.first, width);
  if (auto used = detail::use(on.device_index()); !used) return used;
  return TROUPE_CHECK_CUDA(cudaMemcpy2DAsync(to.first, to.pitch, from.first, from.pitch, width,
                                             rows, cudaMemcpyDefault, on.handle()));
}

} // namespace troupe::cuda
