// SPDX-License-Identifier: Apache-2.0
// Stands for cuBLAS' header of this name: the functions that Troupe calls, as plain loops.
#pragma once

#include <cuda_runtime.h>

struct cublasContext;
using cublasHandle_t = cublasContext*;

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes);
cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t a_form,
                              cublasOperation_t b_form, int m, int n, int k, const float* alpha,
                              const float* a, int a_step, const float* b, int b_step,
                              const float* beta, float* c, int c_step);
cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t a_form,
                              cublasOperation_t b_form, int m, int n, int k, const double* alpha,
                              const double* a, int a_step, const double* b, int b_step,
                              const double* beta, double* c, int c_step);
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_form,
                                         cublasOperation_t b_form, int m, int n, int k,
                                         const float* alpha, const float* a, int a_step,
                                         long long a_distance, const float* b, int b_step,
                                         long long b_distance, const float* beta, float* c,
                                         int c_step, long long c_distance, int batch);
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_form,
                                         cublasOperation_t b_form, int m, int n, int k,
                                         const double* alpha, const double* a, int a_step,
                                         long long a_distance, const double* b, int b_step,
                                         long long b_distance, const double* beta, double* c,
                                         int c_step, long long c_distance, int batch);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_form,
                            cublasOperation_t b_form, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType a_type, int a_step, const void* b,
                            cudaDataType b_type, int b_step, const void* beta, void* c,
                            cudaDataType c_type, int c_step, cublasComputeType_t how,
                            cublasGemmAlgo_t algorithm);
cublasStatus_t
cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_form,
                           cublasOperation_t b_form, int m, int n, int k, const void* alpha,
                           const void* a, cudaDataType a_type, int a_step, long long a_distance,
                           const void* b, cudaDataType b_type, int b_step, long long b_distance,
                           const void* beta, void* c, cudaDataType c_type, int c_step,
                           long long c_distance, int batch, cublasComputeType_t how,
                           cublasGemmAlgo_t algorithm);
