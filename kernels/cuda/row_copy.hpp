// SPDX-License-Identifier: Apache-2.0
// Rows of equal length, copied from one array into another: for arrays that lie side by side.
#pragma once

#include "kernels/cuda/stream.hpp"

#include <cstddef>

namespace troupe::cuda {

/// Where rows lie. Units: bytes
template <class Byte>
struct row_place {
  Byte* first = nullptr;
  size_t pitch = 0; ///< From the beginning of one row to that of the next; at least their width.
};

/// Queues the copy of `rows` rows of `width` bytes. Errors, and what must stay: as `stream::copy`.
[[nodiscard]] expected<void> copy_rows(const stream& on, row_place<const void> from,
                                       row_place<void> to, size_t width, size_t rows);

} // namespace troupe::cuda
