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

/// What both precisions of cblas take, in its types.
struct arguments {
  explicit arguments(const matmul_form& form)
    : a_flag(flag(form.transpose_a)), b_flag(flag(form.transpose_b)),
      m(static_cast<int>(form.rows)), n(static_cast<int>(form.columns)),
      k(static_cast<int>(form.inner)), a_step(row_step(form.transpose_a, form.rows, form.inner)),
      b_step(row_step(form.transpose_b, form.inner, form.columns)),
      c_step(row_step(false, form.rows, form.columns)) {}

  CBLAS_TRANSPOSE a_flag, b_flag;
  int m, n, k;
  int a_step, b_step, c_step;
};

void call(const matmul_form& form, const float* a, const float* b, float* c) {
  arguments with{form};
  cblas_sgemm(CblasRowMajor, with.a_flag, with.b_flag, with.m, with.n, with.k,
              static_cast<float>(form.alpha), a, with.a_step, b, with.b_step,
              static_cast<float>(form.beta), c, with.c_step);
}

void call(const matmul_form& form, const double* a, const double* b, double* c) {
  arguments with{form};
  cblas_dgemm(CblasRowMajor, with.a_flag, with.b_flag, with.m, with.n, with.k, form.alpha, a,
              with.a_step, b, with.b_step, form.beta, c, with.c_step);
}

} // namespace

template <class T>
void matmul(const context&, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c) {
  auto rows = form.rows, columns = form.columns, inner = form.inner;
  TROUPE_ASSERT(a.size() == rows * inner, a.size(), rows, inner);
  TROUPE_ASSERT(b.size() == inner * columns, b.size(), inner, columns);
  TROUPE_ASSERT(c.size() == rows * columns, c.size(), rows, columns);
  TROUPE_ASSERT(std::max({rows, columns, inner}) <= matmul_extent_max, rows, columns, inner);
  use_one_thread();
  call(form, a.data(), b.data(), c.data());
}

template void matmul(const context&, const matmul_form&, std::span<const float>,
                     std::span<const float>, std::span<float>);
template void matmul(const context&, const matmul_form&, std::span<const double>,
                     std::span<const double>, std::span<double>);

} // namespace troupe::cpu
