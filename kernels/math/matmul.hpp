// SPDX-License-Identifier: Apache-2.0
// The product of two matrices, or of each pair in a batch, either of them transposed on the way.
#pragma once

#include "kernels/math/product_precision.hpp"
#include "kernels/tensor/context.hpp"
#include "kernels/tensor/elements.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace troupe {

/// The form of a product: c = alpha * op(a) * op(b) + beta * c.
/// With beta = 0, c is only written: NaN that lay there does not survive.
struct matmul_form {
  size_t rows = 0;          ///< Rows of c and op(a).
  size_t columns = 0;       ///< Columns of c and op(b).
  size_t inner = 0;         ///< Columns of op(a), rows of op(b); 0 gives c = beta * c.
  bool transpose_a = false; ///< a is stored as [inner, rows] instead of [rows, inner].
  bool transpose_b = false; ///< b is stored as [columns, inner] instead of [inner, columns].
  double alpha = 1;
  double beta = 0;
  size_t batch = 1; ///< Products, of matrices that lie one after the other in a, b and c.
  /// The format that a and b are rounded to first, before alpha; c is not rounded.
  product_precision precision = product_precision::full;
};

/// Largest extent that the twins for CPUs and GPUs take: cuBLAS counts in 32 bits.
inline constexpr size_t matmul_extent_max = 0x7fffffff;

namespace detail {

/// Asserts that arrays of these sizes and this type are those of a product.
inline void check_sizes(const matmul_form& form, dtype type, size_t a, size_t b, size_t c) {
  auto rows = form.rows, columns = form.columns, inner = form.inner, batch = form.batch;
  TROUPE_ASSERT(a == batch * rows * inner, a, batch, rows, inner);
  TROUPE_ASSERT(b == batch * inner * columns, b, batch, inner, columns);
  TROUPE_ASSERT(c == batch * rows * columns, c, batch, rows, columns);
  TROUPE_ASSERT(std::max({rows, columns, inner, batch}) <= matmul_extent_max, rows, columns, inner,
                batch);
  TROUPE_ASSERT(has_precision(type, form.precision), to_string(form.precision));
}

} // namespace detail

namespace reference {

/// Shape: a  [batch, rows, inner]     row-major f32 or f64; each matrix may be its transpose
///        b  [batch, inner, columns]  row-major; each matrix may be its transpose
///        c  [batch, rows, columns]   row-major; aliases neither
/// Cost: 2 * batch * rows * columns * inner operations.
/// @pre Every extent is at most `matmul_extent_max`; in f64, the precision is full.
template <class T>
void matmul(const context&, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c);

} // namespace reference

namespace cpu {

/// As the reference: f32 through oneDNN on x86-64, all else through Eigen. The calling thread
/// computes alone: replicas are what runs in parallel here, and a product that is always computed
/// by one thread always adds up in the same order. Another kind of processor may add up in another
/// one. The products of a batch have the bits that each has alone. Operands that are rounded are
/// copied first, so that other precisions than the full one are no faster: they show what they do
/// to a result. Thread: any; calls do not wait for each other.
template <class T>
void matmul(const context&, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c);

/// The library that computes products of f32: "oneDNN" or "Eigen".
[[nodiscard]] std::string_view matmul_library();

/// The instruction set of this processor that products of f32 use: "AVX2", "ARM NEON".
[[nodiscard]] std::string_view matmul_instructions();

} // namespace cpu

namespace cuda {

/// As the reference, through cuBLAS, and always in the same order on one kind of device and version
/// of the library. Operands of 16 bits are made by `cast`, in workspaces of the context. For tf32
/// the library rounds them itself, and does not say which way: some devices cut the last bits off.
template <class T>
void matmul(const context&, const matmul_form& form, std::span<const T> a, std::span<const T> b,
            std::span<T> c);

/// The same in f32, with operands that may have been cast before, for several products.
/// @param a, b f32, or `operand_type(form.precision)`.
void matmul(const context&, const matmul_form& form, const elements& a, const elements& b,
            std::span<float> c);

} // namespace cuda

} // namespace troupe
