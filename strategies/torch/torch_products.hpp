// SPDX-License-Identifier: Apache-2.0
// The library that multiplies libtorch's matrices, and whether it knows this processor.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// For a line when a program starts: "OpenBLAS, kernels for SkylakeX". OpenBLAS chooses its kernels
/// by a list of processors, and takes the oldest ones for a processor that is not in it: then the
/// line also says which environment variable names faster ones. Thread: any.
[[nodiscard]] std::string torch_products();

namespace detail {

/// @param kernels As OpenBLAS calls them: "Prescott". @param widest The widest that this processor
/// has: "SkylakeX" for AVX-512, "Haswell" for AVX2; empty: neither.
[[nodiscard]] std::string openblas_products(std::string_view kernels, std::string_view widest);

} // namespace detail

} // namespace troupe
