// SPDX-License-Identifier: Apache-2.0
// The few functions of cuBLAS that we call. Only for files that see CUDA's headers.
#pragma once

#include "messages/errc.hpp"

#include <cublas_v2.h>

namespace troupe::cuda {

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
};

/// The library, loaded by the first call.
/// Errors: resource; the line names the file that is missing.
[[nodiscard]] const expected<blas_library>& blas();

} // namespace troupe::cuda
