// SPDX-License-Identifier: Apache-2.0
// Products of matrices that lie within larger ones, for the cpu twins of other operations.
#pragma once

#include "kernels/math/matmul.hpp"

#include <cstddef>

namespace troupe::cpu::detail {

/// A matrix whose stored rows begin so many elements after each other.
template <class T>
struct matrix_block {
  T* data = nullptr;
  size_t row_step = 0;
};

/// As `cpu::matmul`, on blocks and without a batch; f32 or f64.
/// @pre No extent of `form` is 0, and its batch is 1.
void multiply(const matmul_form& form, matrix_block<const float> a, matrix_block<const float> b,
              matrix_block<float> c);
void multiply(const matmul_form& form, matrix_block<const double> a, matrix_block<const double> b,
              matrix_block<double> c);

} // namespace troupe::cpu::detail
