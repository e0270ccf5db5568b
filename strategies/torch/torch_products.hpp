// SPDX-License-Identifier: Apache-2.0
// Products of libtorch's matrices. OpenBLAS chooses its kernels by a list of processors; those
// that it does not know get the oldest ones.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// For a line when a program starts: "OpenBLAS, kernels for SkylakeX"; for kernels that are slower
/// than this processor allows, with the environment variable that names others. Thread: any.
[[nodiscard]] std::string torch_products();

namespace detail {

/// @param kernels As OpenBLAS calls them: "Prescott". @param widest The widest that this processor
/// has: "SkylakeX" for AVX-512, "Haswell" for AVX2; empty: neither.
[[nodiscard]] std::string openblas_products(std::string_view kernels, std::string_view widest);

} // namespace detail

} // namespace troupe
