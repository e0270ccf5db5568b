// SPDX-License-Identifier: Apache-2.0
// cuBLAS as three loops, and in place of looking for the library.
#include "kernels/cuda/blas.cuh"

#include "kernels/math/product_precision.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

/// An operand as it is.
struct unchanged {
  template <class T>
  T operator()(T value) const {
    return value;
  }
};

/// c = alpha * op(a) * op(b) + beta * c, stored column by column.
/// @param read Makes a factor of an operand.
template <class T, class Operand, class Read = unchanged>
cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t a_form, cublasOperation_t b_form,
                        int m, int n, int k, T alpha, const Operand* a, int a_step,
                        const Operand* b, int b_step, T beta, T* c, int c_step, Read read = {}) {
  auto loops = [=] {
    for (int row = 0; row < m; ++row)
      for (int column = 0; column < n; ++column) {
        T sum = 0;
        for (int i = 0; i < k; ++i)
          sum += read(a[a_form == CUBLAS_OP_N ? row + i * a_step : i + row * a_step])
                 * read(b[b_form == CUBLAS_OP_N ? i + column * b_step : column + i * b_step]);
        T& out = c[row + column * c_step];
        out = alpha * sum + (beta == 0 ? T{0} : beta * out);
      }
  };
  bool fits = a_step >= 1 && b_step >= 1 && c_step >= 1 && c_step >= m
              && a_step >= (a_form == CUBLAS_OP_N ? m : k)
              && b_step >= (b_form == CUBLAS_OP_N ? k : n);
  if (!fits) return CUBLAS_STATUS_INVALID_VALUE;
  auto queued = troupe::emulated::queue(handle->stream, loops);
  return queued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <class T, class Operand, class Read = unchanged>
cublasStatus_t multiply_each(cublasHandle_t handle, cublasOperation_t a_form,
                             cublasOperation_t b_form, int m, int n, int k, T alpha,
                             const Operand* a, int a_step, long long a_distance, const Operand* b,
                             int b_step, long long b_distance, T beta, T* c, int c_step,
                             long long c_distance, int batch, Read read = {}) {
  auto status = CUBLAS_STATUS_SUCCESS;
  for (int i = 0; i < batch && status == CUBLAS_STATUS_SUCCESS; ++i)
    status = multiply(handle, a_form, b_form, m, n, k, alpha, a + i * a_distance, a_step,
                      b + i * b_distance, b_step, beta, c + i * c_distance, c_step, read);
  return status;
}

} // namespace

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t a_form,
                              cublasOperation_t b_form, int m, int n, int k, const float* alpha,
                              const float* a, int a_step, const float* b, int b_step,
                              const float* beta, float* c, int c_step) {
  return multiply(handle, a_form, b_form, m, n, k, *alpha, a, a_step, b, b_step, *beta, c, c_step);
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t a_form,
                              cublasOperation_t b_form, int m, int n, int k, const double* alpha,
                              const double* a, int a_step, const double* b, int b_step,
                              const double* beta, double* c, int c_step) {
  return multiply(handle, a_form, b_form, m, n, k, *alpha, a, a_step, b, b_step, *beta, c, c_step);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_form,
                                         cublasOperation_t b_form, int m, int n, int k,
                                         const float* alpha, const float* a, int a_step,
                                         long long a_distance, const float* b, int b_step,
                                         long long b_distance, const float* beta, float* c,
                                         int c_step, long long c_distance, int batch) {
  return multiply_each(handle, a_form, b_form, m, n, k, *alpha, a, a_step, a_distance, b, b_step,
                       b_distance, *beta, c, c_step, c_distance, batch);
}

cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_form,
                                         cublasOperation_t b_form, int m, int n, int k,
                                         const double* alpha, const double* a, int a_step,
                                         long long a_distance, const double* b, int b_step,
                                         long long b_distance, const double* beta, double* c,
                                         int c_step, long long c_distance, int batch) {
  return multiply_each(handle, a_form, b_form, m, n, k, *alpha, a, a_step, a_distance, b, b_step,
                       b_distance, *beta, c, c_step, c_distance, batch);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_form,
                            cublasOperation_t b_form, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType a_type, int a_step, const void* b,
                            cudaDataType b_type, int b_step, const void* beta, void* c,
                            cudaDataType c_type, int c_step, cublasComputeType_t how,
                            cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, a_form, b_form, m, n, k, alpha, a, a_type, a_step, 0, b,
                                    b_type, b_step, 0, beta, c, c_type, c_step, 0, 1, how,
                                    algorithm);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_form,
                                          cublasOperation_t b_form, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType a_type,
                                          int a_step, long long a_distance, const void* b,
                                          cudaDataType b_type, int b_step, long long b_distance,
                                          const void* beta, void* c, cudaDataType c_type,
                                          int c_step, long long c_distance, int batch,
                                          cublasComputeType_t how, cublasGemmAlgo_t algorithm) {
  using namespace troupe;
  auto multiply = [=](auto zero, auto read) {
    using operand = decltype(zero);
    return multiply_each(handle, a_form, b_form, m, n, k, *static_cast<const float*>(alpha),
                         static_cast<const operand*>(a), a_step, a_distance,
                         static_cast<const operand*>(b), b_step, b_distance,
                         *static_cast<const float*>(beta), static_cast<float*>(c), c_step,
                         c_distance, batch, read);
  };
  auto widened = [](auto value) { return to_float(value); };
  if (a_type != b_type || c_type != CUDA_R_32F || algorithm != CUBLAS_GEMM_DEFAULT)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (a_type == CUDA_R_32F && how == CUBLAS_COMPUTE_32F_FAST_TF32)
    return multiply(float{}, to_tf32);
  if (a_type == CUDA_R_16BF && how == CUBLAS_COMPUTE_32F) return multiply(bfloat16{}, widened);
  if (a_type == CUDA_R_16F && how == CUBLAS_COMPUTE_32F) return multiply(float16{}, widened);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

namespace troupe::cuda {

const expected<blas_library>& blas() {
  static const expected<blas_library> library = blas_library{cublasCreate_v2,
                                                             cublasDestroy_v2,
                                                             cublasSetStream_v2,
                                                             cublasSetWorkspace_v2,
                                                             cublasSgemm_v2,
                                                             cublasDgemm_v2,
                                                             cublasSgemmStridedBatched,
                                                             cublasDgemmStridedBatched,
                                                             cublasGemmEx,
                                                             cublasGemmStridedBatchedEx};
  return library;
}

} // namespace troupe::cuda
