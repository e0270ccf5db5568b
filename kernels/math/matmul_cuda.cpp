// SPDX-License-Identifier: Apache-2.0
// The matrix product through cuBLAS.
#include "kernels/math/matmul.hpp"

#include "kernels/cuda/blas.cuh"
#include "kernels/cuda/check.cuh"
#include "kernels/cuda/context.hpp"
#include "kernels/math/elementwise.hpp"
#include "messages/assert.hpp"

#include <algorithm>
#include <utility>

namespace troupe::cuda {

namespace {

cublasOperation_t flag(bool transposed) {
  return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/// Calls `gemm`, which stores columns one after the other: to it, every matrix of ours is its
/// transpose, and c^T = op(b)^T op(a)^T.
template <class T, class Gemm>
expected<void> call(cublasHandle_t handle, Gemm gemm, const matmul_form& form, const T* a,
                    const T* b, T* c) {
  auto rows = static_cast<int>(form.rows), columns = static_cast<int>(form.columns);
  auto inner = static_cast<int>(form.inner);
  auto alpha = static_cast<T>(form.alpha), beta = static_cast<T>(form.beta);
  return TROUPE_CHECK_CUDA(gemm(handle, flag(form.transpose_b), flag(form.transpose_a), columns,
                                rows, inner, &alpha, b, form.transpose_b ? inner : columns, a,
                                form.transpose_a ? rows : inner, &beta, c, columns));
}

expected<void> product(cublasHandle_t handle, const matmul_form& form, const float* a,
                       const float* b, float* c) {
  return call(handle, blas()->sgemm, form, a, b, c);
}

expected<void> product(cublasHandle_t handle, const matmul_form& form, const double* a,
                       const double* b, double* c) {
  return call(handle, blas()->dgemm, form, a, b, c);
}

} // namespace

template <class T>
void matmul(const context& on, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c) {
  auto rows = form.rows, columns = form.columns, inner = form.inner;
  TROUPE_ASSERT(a.size() == rows * inner, a.size(), rows, inner);
  TROUPE_ASSERT(b.size() == inner * columns, b.size(), inner, columns);
  TROUPE_ASSERT(c.size() == rows * columns, c.size(), rows, columns);
  TROUPE_ASSERT(std::max({rows, columns, inner}) <= matmul_extent_max, rows, columns, inner);
  if (c.empty()) return;
  if (inner == 0 && form.beta == 0) return fill<T>(on, c, 0);
  if (inner == 0) return scale<T>(on, static_cast<T>(form.beta), c, c);
  if (auto* handle = on.blas()) on.note(product(handle, form, a.data(), b.data(), c.data()));
}

template void matmul(const context&, const matmul_form&, std::span<const float>,
                     std::span<const float>, std::span<float>);
template void matmul(const context&, const matmul_form&, std::span<const double>,
                     std::span<const double>, std::span<double>);

} // namespace troupe::cuda
