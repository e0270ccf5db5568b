// SPDX-License-Identifier: Apache-2.0
// The matrix product through OpenBLAS.
#include "kernels/matmul.hpp"
#include "messages/assert.hpp"

#include <algorithm>
#include <cblas.h>

namespace troupe::cpu {

namespace {

void use_one_thread() {
  static const bool done = (openblas_set_num_threads(1), true);
  static_cast<void>(done);
}

/// What cblas calls the leading dimension: elements from one stored row to the next, at least 1.
int row_step(bool transposed, size_t rows, size_t columns) {
  return static_cast<int>(std::max<size_t>(1, transposed ? rows : columns));
}

CBLAS_TRANSPOSE flag(bool transposed) {
  return transposed ? CblasTrans : CblasNoTrans;
}

} // namespace

template <class T>
void matmul(const context&, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c) {
  auto [rows, columns, inner, transpose_a, transpose_b, alpha, beta] = form;
  TROUPE_ASSERT(a.size() == rows * inner, a.size(), rows, inner);
  TROUPE_ASSERT(b.size() == inner * columns, b.size(), inner, columns);
  TROUPE_ASSERT(c.size() == rows * columns, c.size(), rows, columns);
  TROUPE_ASSERT(std::max({rows, columns, inner}) <= matmul_extent_max, rows, columns, inner);
  use_one_thread();
  auto m = static_cast<int>(rows);
  auto n = static_cast<int>(columns);
  auto k = static_cast<int>(inner);
  auto a_step = row_step(transpose_a, rows, inner);
  auto b_step = row_step(transpose_b, inner, columns);
  auto c_step = row_step(false, rows, columns);
  if constexpr (sizeof(T) == sizeof(float))
    cblas_sgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), m, n, k,
                static_cast<float>(alpha), a.data(), a_step, b.data(), b_step,
                static_cast<float>(beta), c.data(), c_step);
  else
    cblas_dgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), m, n, k, alpha, a.data(),
                a_step, b.data(), b_step, beta, c.data(), c_step);
}

template void matmul(const context&, const matmul_form&, std::span<const float>,
                     std::span<const float>, std::span<float>);
template void matmul(const context&, const matmul_form&, std::span<const double>,
                     std::span<const double>, std::span<double>);

} // namespace troupe::cpu
