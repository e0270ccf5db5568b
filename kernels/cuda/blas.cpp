// SPDX-License-Identifier: Apache-2.0
// Finding cuBLAS at run time.
#include "kernels/cuda/blas.cuh"

#include <dlfcn.h>
#include <string>

namespace troupe::cuda {

namespace {

template <class Function>
bool find(void* library, const char* name, Function& found) {
  found = reinterpret_cast<Function>(::dlsym(library, name));
  return found != nullptr;
}

expected<blas_library> load() {
  // The version is that of the header at compile time; TROUPE_CUDA_LIBRARIES is where it lay then.
  const auto name = "libcublas.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    library = ::dlopen((TROUPE_CUDA_LIBRARIES "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(errc::resource, std::string("cuBLAS cannot be loaded: ") + ::dlerror()
                                  + "; install it, or add its folder to LD_LIBRARY_PATH");
  blas_library found;
  if (find(library, "cublasCreate_v2", found.create)
      && find(library, "cublasDestroy_v2", found.destroy)
      && find(library, "cublasSetStream_v2", found.set_stream)
      && find(library, "cublasSetWorkspace_v2", found.set_workspace)
      && find(library, "cublasSgemm_v2", found.sgemm)
      && find(library, "cublasDgemm_v2", found.dgemm)
      && find(library, "cublasSgemmStridedBatched", found.sgemm_batched)
      && find(library, "cublasDgemmStridedBatched", found.dgemm_batched)
      && find(library, "cublasGemmEx", found.gemm_ex)
      && find(library, "cublasGemmStridedBatchedEx", found.gemm_batched_ex))
    return found; // never unloaded: handles may live until the end of the process
  return fail(errc::resource, name + " lacks functions that every cuBLAS has; install it anew");
}

} // namespace

const expected<blas_library>& blas() {
  static const auto library = load();
  return library;
}

} // namespace troupe::cuda
