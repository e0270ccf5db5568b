// SPDX-License-Identifier: Apache-2.0
// The few functions of cuBLAS that we call. Only for files that see CUDA's headers.
#pragma once

#include "messages/errors/errc.hpp"

#include <cublas_v2.h>

namespace troupe::cuda {

// In C++ the header has a second function of each of these names, for older callers; so their types
// are written down.

/// `cublasGemmEx`: arrays may be of several formats.
using blas_gemm_ex = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                        int, int, const void*, const void*, cudaDataType, int,
                                        const void*, cudaDataType, int, const void*, void*,
                                        cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);

/// `cublasGemmStridedBatchedEx`.
using blas_gemm_batched_ex
  = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                       const void*, const void*, cudaDataType, int, long long, const void*,
                       cudaDataType, int, long long, const void*, void*, cudaDataType, int,
                       long long, int, cublasComputeType_t, cublasGemmAlgo_t);

/// cuBLAS is half a gigabyte, and training on a CPU should neither need nor load it: it is looked
/// for when a context first multiplies matrices.
struct blas_library {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSgemm_v2) sgemm = nullptr;
  decltype(&cublasDgemm_v2) dgemm = nullptr;
  decltype(&cublasSgemmStridedBatched) sgemm_batched = nullptr;
  decltype(&cublasDgemmStridedBatched) dgemm_batched = nullptr;
  blas_gemm_ex gemm_ex = nullptr;
  blas_gemm_batched_ex gemm_batched_ex = nullptr;
};

/// The library, loaded by the first call.
/// Errors: resource; the line names the file that is missing.
[[nodiscard]] const expected<blas_library>& blas();

} // namespace troupe::cuda
