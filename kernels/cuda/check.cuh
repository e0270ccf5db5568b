// SPDX-License-Identifier: Apache-2.0
// Where CUDA's codes become ours. Only for files that see CUDA's headers.
#pragma once

#include "messages/errors/errc.hpp"

#include <cuda_runtime.h>

#include <cublas_v2.h>

namespace troupe::cuda::detail {

/// True for errors after which every call of this process on the device fails, such as an illegal
/// address: only a new process can use the device again. Builds with an older CUDA know the errors
/// of CUDA 13, too.
[[nodiscard]] bool is_sticky(cudaError_t code);

/// Nothing for `cudaSuccess`, else the error: resource if the device has no more memory, not_found
/// if there is no such device, unavailable if the error is sticky, else failed_precondition. The
/// line holds the expression, the current device, and the place.
[[nodiscard]] expected<void> check(cudaError_t code, const char* expression, const char* file,
                                   int line);

/// The same for cuBLAS: resource if an allocation failed, unavailable if work on the device failed,
/// else failed_precondition.
[[nodiscard]] expected<void> check(cublasStatus_t code, const char* expression, const char* file,
                                   int line);

/// Makes `device_index` the device of the calling thread.
[[nodiscard]] expected<void> use(int device_index);

} // namespace troupe::cuda::detail

/// The result of a call of CUDA or cuBLAS as `expected<void>`.
#define TROUPE_CHECK_CUDA(expression)                                                              \
  ::troupe::cuda::detail::check((expression), #expression, __FILE__, __LINE__)

/// Makes a call of CUDA or cuBLAS, and returns its error, if there is one, from this function.
#define TROUPE_TRY_CUDA(expression)                                                                \
  do {                                                                                             \
    if (auto tried = TROUPE_CHECK_CUDA(expression); !tried)                                        \
      return tl::unexpected(std::move(tried).error());                                             \
  } while (false)
