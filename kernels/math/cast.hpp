// SPDX-License-Identifier: Apache-2.0
// Elements of one floating type as elements of another.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/elements.hpp"
#include "kernels/tensor/tensor.hpp"

namespace troupe {

namespace reference {

/// to[i] = from[i], rounded to nearest, ties to even, where the type is narrower; what is too large
/// becomes infinity, NaN stays NaN. From f64 to 16 bits there are two roundings, by way of f32.
/// Shape: from  [n]  f32, f64, f16 or bf16
///        to    [n]  of the same types; aliases nothing
void cast(const context&, const elements& from, const mutable_elements& to);

} // namespace reference

namespace cpu {

/// As the reference, bit for bit but for the payloads of NaN.
void cast(const context&, const elements& from, const mutable_elements& to);

} // namespace cpu

namespace cuda {

/// As the reference, bit for bit but for the payloads of NaN.
void cast(const context&, const elements& from, const mutable_elements& to);

} // namespace cuda

/// The same elements in another floating type; the same tensor if they have it already.
/// Errors: throws `failure` with type_mismatch for integers, and with failed_precondition for a
/// tensor that does not lie on the host.
[[nodiscard]] tensor cast(const tensor& from, dtype type);

} // namespace troupe
