// SPDX-License-Identifier: Apache-2.0
// Clipping: gradients that are too long are made shorter, in the same direction.
#pragma once

#include "kernels/tensor/context.hpp"
#include "kernels/tensor/host_device.hpp"

#include <cmath>
#include <limits>
#include <span>

namespace troupe {

/// The factor by which gradients of this norm come to at most `norm_max`: exactly 1 if they are
/// there already. NaN if the norm is not finite, so that every variable shows what happened, as in
/// TensorFlow's clip_by_global_norm. The fused update takes it as the scale of its gradients.
/// @pre norm_max > 0
/// Source: Pascanu et al., "On the difficulty of training recurrent neural networks", 2013,
/// algorithm 1.
[[nodiscard]] TROUPE_HOST_DEVICE inline double clip_factor(double norm, double norm_max) {
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  return norm > norm_max ? norm_max / norm : 1; // a limit may be infinite
}

namespace cuda {

/// to[0] = scale * `clip_factor` of a norm whose square is squares[0]; both lie on the device,
/// which is not waited for. Shape: squares, to  [1]
void clip_scale(const context&, std::span<const double> squares, double norm_max, double scale,
                std::span<double> to);

} // namespace cuda

} // namespace troupe
