// SPDX-License-Identifier: Apache-2.0
// Arrays of Troupe as those of libtorch, and the other way round, without a copy.
#pragma once

#include "kernels/tensor/tensor.hpp"

namespace at {
class Tensor;
} // namespace at

namespace troupe {

/// The same elements for libtorch, which keep their memory as long as it refers to them. libtorch
/// knows no read-only arrays: one that is must not be written to there, either.
/// Errors: throws `failure` with unimplemented for an array on a device.
[[nodiscard]] at::Tensor to_torch(const tensor& value);

/// The same elements for Troupe.
/// Errors: throws `failure`: type_mismatch for element types that are not f32, f64, f16, bf16, i32
/// or i64; unimplemented for an array that is sparse or lies on a device.
[[nodiscard]] tensor from_torch(const at::Tensor& value);

/// A gradient for Troupe: one in coordinates, as of a sparse embedding, becomes rows.
/// Errors: as above; throws `failure` with unimplemented for coordinates of more than rows.
[[nodiscard]] gradient gradient_from_torch(const at::Tensor& value);

} // namespace troupe
