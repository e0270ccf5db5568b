// SPDX-License-Identifier: Apache-2.0
// Gradients made shorter where they are too long, their direction kept.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/elements.hpp"
#include "kernels/tensor/host_device.hpp"

#include <cmath>
#include <limits>
#include <span>

namespace troupe {

/// The factor by which gradients of this norm come to at most `norm_max`: exactly 1 if they are
/// there already. NaN if the norm is not finite, so that every variable shows what happened.
/// The fused update takes it as the scale of its gradients. @pre norm_max > 0
[[nodiscard]] TROUPE_HOST_DEVICE inline double clip_factor(double norm, double norm_max) {
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  return norm > norm_max ? norm_max / norm : 1; // a limit may be infinite
}

namespace cpu {

/// The Euclidean norm of all elements of all arrays together, of any floating types, in double. The
/// order of additions depends on the sizes alone.
[[nodiscard]] double global_norm(const context&, std::span<const elements> arrays);

/// Multiplies all arrays by one factor, so that their global norm is at most `norm_max`; one array
/// is a clip by its own norm. T is f32 or f64.
/// @returns The global norm before.
/// Source: Pascanu et al., "On the difficulty of training recurrent neural networks", 2013,
/// algorithm 1; NaN for a norm that is not finite as in TensorFlow's clip_by_global_norm.
template <class T>
double clip_by_global_norm(const context&, std::span<const std::span<T>> arrays, double norm_max);

} // namespace cpu

namespace cuda {

/// to[0] = scale * `clip_factor` of a norm whose square is squares[0]; both lie on the device,
/// which is not waited for. Shape: squares, to  [1]
void clip_scale(const context&, std::span<const double> squares, double norm_max, double scale,
                std::span<double> to);

/// Waits once for its result, which is that of the cpu twin bit for bit.
[[nodiscard]] double global_norm(const context&, std::span<const elements> arrays);

/// Waits once for its result, which is that of the cpu twin bit for bit.
template <class T>
double clip_by_global_norm(const context&, std::span<const std::span<T>> arrays, double norm_max);

} // namespace cuda

} // namespace troupe
