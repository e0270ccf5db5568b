// SPDX-License-Identifier: Apache-2.0
// Products of matrices that lie within larger ones, for the cpu twins of other operations.
#pragma once

#include "kernels/math/matmul.hpp"

#include <cstddef>
#include <memory>
#include <span>

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

/// to[i] = rounded(values[i], precision); `to` may be where the values are.
void round_operands(std::span<const float> values, product_precision precision, float* to);
void round_operands(std::span<const double> values, product_precision precision, double* to);

/// An operand as a product takes it: where it is, or rounded.
template <class T>
class operand {
public:
  operand(std::span<const T> values, product_precision precision) : first_(values.data()) {
    if (precision == product_precision::full) return;
    rounded_ = std::make_unique_for_overwrite<T[]>(values.size());
    round_operands(values, precision, rounded_.get());
    first_ = rounded_.get();
  }

  /// From its n-th element on.
  [[nodiscard]] const T* at(size_t n) const { return first_ + n; }

private:
  std::unique_ptr<T[]> rounded_;
  const T* first_;
};

} // namespace troupe::cpu::detail
