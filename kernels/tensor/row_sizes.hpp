// SPDX-License-Identifier: Apache-2.0
// The sizes of arrays that are taken row by row.
#pragma once

#include "messages/errors/assert.hpp"

#include <cstddef>
#include <initializer_list>

namespace troupe::detail {

/// Asserts that arrays of these sizes are matrices of so many rows and columns, and vectors as long
/// as a row.
inline void check_rows(size_t rows, size_t columns, std::initializer_list<size_t> matrices,
                       std::initializer_list<size_t> vectors) {
  for (auto size : matrices)
    TROUPE_ASSERT(size == rows * columns, size, rows, columns);
  for (auto size : vectors)
    TROUPE_ASSERT(size == columns, size, columns);
}

} // namespace troupe::detail
