// SPDX-License-Identifier: Apache-2.0
// Finding cuBLAS at run time.
#include "kernels/cuda/blas.cuh"

#include "kernels/cuda/loaded_library.hpp"

#include <string>

namespace troupe::cuda {

namespace {

expected<blas_library> load() {
  // The version is that of the header at compile time; TROUPE_CUDA_LIBRARIES is where it lay then.
  const auto name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
  auto library = loaded_library::open("cuBLAS", name, TROUPE_CUDA_LIBRARIES);
  if (!library) return tl::unexpected<error>(library.error());
  blas_library found;
  if (library->find("cublasCreate_v2", found.create)
      && library->find("cublasDestroy_v2", found.destroy)
      && library->find("cublasSetStream_v2", found.set_stream)
      && library->find("cublasSetWorkspace_v2", found.set_workspace)
      && library->find("cublasSgemm_v2", found.sgemm)
      && library->find("cublasDgemm_v2", found.dgemm)
      && library->find("cublasSgemmStridedBatched", found.sgemm_batched)
      && library->find("cublasDgemmStridedBatched", found.dgemm_batched)
      && library->find("cublasGemmEx", found.gemm_ex)
      && library->find("cublasGemmStridedBatchedEx", found.gemm_batched_ex))
    return found;
  return fail(errc::resource, name + " lacks functions that every cuBLAS has; install it anew");
}

} // namespace

const expected<blas_library>& blas() {
  static const auto library = load();
  return library;
}

} // namespace troupe::cuda
