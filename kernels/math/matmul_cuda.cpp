// SPDX-License-Identifier: Apache-2.0
// The matrix product through cuBLAS, which takes a batch as one call.
#include "kernels/math/matmul.hpp"

#include "kernels/cuda/blas.cuh"
#include "kernels/cuda/check.cuh"
#include "kernels/cuda/context.hpp"
#include "kernels/math/cast.hpp"
#include "kernels/math/elementwise.hpp"

#include <memory>
#include <type_traits>

namespace troupe::cuda {

namespace {

cublasOperation_t flag(bool transposed) {
  return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/// Calls one of cuBLAS' functions, which store columns one after the other: to them, every matrix
/// of ours is its transpose, and c^T = op(b)^T op(a)^T.
template <class T, class Operand, class Gemm, class BatchedGemm>
expected<void> call(cublasHandle_t handle, Gemm gemm, BatchedGemm batched_gemm,
                    const matmul_form& form, const Operand* a, const Operand* b, T* c) {
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

/// Sums in f32 of products of operands that cuBLAS knows as `type`.
expected<void> product_of(cudaDataType type, cublasComputeType_t compute_type,
                          cublasHandle_t handle, const matmul_form& form, const void* a,
                          const void* b, float* c) {
  auto gemm = [=](auto on, auto flag_a, auto flag_b, int m, int n, int k, const float* alpha,
                  const void* left, int left_step, const void* right, int right_step,
                  const float* beta, float* out, int out_step) {
    return blas()->gemm_ex(on, flag_a, flag_b, m, n, k, alpha, left, type, left_step, right, type,
                           right_step, beta, out, CUDA_R_32F, out_step, compute_type,
                           CUBLAS_GEMM_DEFAULT);
  };
  auto batched_gemm
    = [=](auto on, auto flag_a, auto flag_b, int m, int n, int k, const float* alpha,
          const void* left, int left_step, long long left_distance, const void* right,
          int right_step, long long right_distance, const float* beta, float* out, int out_step,
          long long out_distance, int count) {
        return blas()->gemm_batched_ex(on, flag_a, flag_b, m, n, k, alpha, left, type, left_step,
                                       left_distance, right, type, right_step, right_distance, beta,
                                       out, CUDA_R_32F, out_step, out_distance, count, compute_type,
                                       CUBLAS_GEMM_DEFAULT);
      };
  return call(handle, gemm, batched_gemm, form, a, b, c);
}

/// An operand in 16 bits: where it lies, or cast. The stream's order keeps the memory for what is
/// queued next.
template <class T>
class narrow_operand {
public:
  narrow_operand(const context& on, const elements& values) : first_(values.data) {
    if (values.type == dtype_of<T>) return;
    block_ = on.workspace(values.count * sizeof(T));
    first_ = block_.get();
    if (block_ != nullptr)
      cast(on, values, std::span{reinterpret_cast<T*>(block_.get()), values.count});
  }

  [[nodiscard]] const void* data() const { return first_; }

private:
  std::shared_ptr<std::byte> block_;
  const void* first_;
};

template <class T>
void multiply_narrow(const context& on, cublasHandle_t handle, const matmul_form& form,
                     const elements& a, const elements& b, std::span<float> c) {
  const narrow_operand<T> left{on, a}, right{on, b};
  if (!on.status()) return;
  auto type = std::is_same_v<T, bfloat16> ? CUDA_R_16BF : CUDA_R_16F;
  on.note(product_of(type, CUBLAS_COMPUTE_32F, handle, form, left.data(), right.data(), c.data()));
}

void multiply(const context& on, cublasHandle_t handle, const matmul_form& form, const elements& a,
              const elements& b, std::span<float> c) {
  switch (form.precision) {
  case product_precision::full:
    return static_cast<void>(on.note(call(handle, blas()->sgemm, blas()->sgemm_batched, form,
                                          a.as<float>().data(), b.as<float>().data(), c.data())));
  case product_precision::tf32:
    return static_cast<void>(
      on.note(product_of(CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, handle, form,
                         a.as<float>().data(), b.as<float>().data(), c.data())));
  case product_precision::bf16:
    return multiply_narrow<bfloat16>(on, handle, form, a, b, c);
  case product_precision::f16:
    return multiply_narrow<float16>(on, handle, form, a, b, c);
  }
}

void multiply(const context& on, cublasHandle_t handle, const matmul_form& form, const elements& a,
              const elements& b, std::span<double> c) {
  on.note(call(handle, blas()->dgemm, blas()->dgemm_batched, form, a.as<double>().data(),
               b.as<double>().data(), c.data()));
}

template <class T>
void multiply_checked(const context& on, const matmul_form& form, const elements& a,
                      const elements& b, std::span<T> c) {
  troupe::detail::check_sizes(form, dtype_of<T>, a.count, b.count, c.size());
  if (c.empty()) return;
  if (form.inner == 0 && form.beta == 0) return fill<T>(on, c, 0);
  if (form.inner == 0) return scale<T>(on, static_cast<T>(form.beta), c, c);
  if (auto* handle = on.blas()) multiply(on, handle, form, a, b, c);
}

} // namespace

template <class T>
void matmul(const context& on, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c) {
  multiply_checked(on, form, a, b, c);
}

void matmul(const context& on, const matmul_form& form, const elements& a, const elements& b,
            std::span<float> c) {
  multiply_checked(on, form, a, b, c);
}

template void matmul(const context&, const matmul_form&, std::span<const float>,
                     std::span<const float>, std::span<float>);
template void matmul(const context&, const matmul_form&, std::span<const double>,
                     std::span<const double>, std::span<double>);

} // namespace troupe::cuda
