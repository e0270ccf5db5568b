// SPDX-License-Identifier: Apache-2.0
// The matrix product through cuBLAS, which takes a batch as one call.
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

/// Calls one of cuBLAS' functions, which store columns one after the other: to them, every matrix
/// of ours is its transpose, and c^T = op(b)^T op(a)^T.
template <class T, class Gemm, class BatchedGemm>
expected<void> call(cublasHandle_t handle, Gemm gemm, BatchedGemm batched_gemm,
                    const matmul_form& form, const T* a, const T* b, T* c) {
  auto rows = static_cast<int>(form.rows), columns = static_cast<int>(form.columns);
  auto inner = static_cast<int>(form.inner);
  auto alpha = static_cast<T>(form.alpha), beta = static_cast<T>(form.beta);
  auto a_step = form.transpose_a ? rows : inner, b_step = form.transpose_b ? inner : columns;
  auto flag_a = flag(form.transpose_a), flag_b = flag(form.transpose_b);
  if (form.batch == 1)
    return TROUPE_CHECK_CUDA(gemm(handle, flag_b, flag_a, columns, rows, inner, &alpha, b, b_step,
                                  a, a_step, &beta, c, columns));
  auto distance = [](int height, int width) { return static_cast<long long>(height) * width; };
  return TROUPE_CHECK_CUDA(batched_gemm(handle, flag_b, flag_a, columns, rows, inner, &alpha, b,
                                        b_step, distance(inner, columns), a, a_step,
                                        distance(rows, inner), &beta, c, columns,
                                        distance(rows, columns), static_cast<int>(form.batch)));
}

expected<void> product(cublasHandle_t handle, const matmul_form& form, const float* a,
                       const float* b, float* c) {
  return call(handle, blas()->sgemm, blas()->sgemm_batched, form, a, b, c);
}

expected<void> product(cublasHandle_t handle, const matmul_form& form, const double* a,
                       const double* b, double* c) {
  return call(handle, blas()->dgemm, blas()->dgemm_batched, form, a, b, c);
}

} // namespace

template <class T>
void matmul(const context& on, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c) {
  auto rows = form.rows, columns = form.columns, inner = form.inner, batch = form.batch;
  TROUPE_ASSERT(a.size() == batch * rows * inner, a.size(), batch, rows, inner);
  TROUPE_ASSERT(b.size() == batch * inner * columns, b.size(), batch, inner, columns);
  TROUPE_ASSERT(c.size() == batch * rows * columns, c.size(), batch, rows, columns);
  TROUPE_ASSERT(std::max({rows, columns, inner, batch}) <= matmul_extent_max, rows, columns, inner,
                batch);
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
