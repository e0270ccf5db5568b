// SPDX-License-Identifier: Apache-2.0
// The library that multiplies libtorch's matrices, and its threads.
#pragma once

#include <string>

namespace troupe {

/// For a line when a program starts: "oneDNN with AVX2". Debian's libtorch calls whatever BLAS is
/// installed, which may be a slow one, or one that takes its oldest kernels for a processor that
/// it does not know. So this library brings the function for products of f32 itself, which a
/// program that links it has libtorch call; a libtorch that has MKL in it calls that. Thread: any.
[[nodiscard]] std::string torch_products();

namespace detail {

/// Has libtorch compute on the calling thread alone.
void use_one_thread();

} // namespace detail

} // namespace troupe
