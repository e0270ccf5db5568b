// SPDX-License-Identifier: Apache-2.0
// The scale of a clip on a GPU.
#include "kernels/cuda/launch.cuh"
#include "kernels/math/clip.hpp"
#include "messages/errors/assert.hpp"

namespace troupe::cuda {

void clip_scale(const context& on, std::span<const double> squares, double norm_max, double scale,
                std::span<double> to) {
  TROUPE_ASSERT(squares.size() == 1 && to.size() == 1, squares.size(), to.size());
  for_each(on, 1, [=, from = squares.data(), out = to.data()] __device__(size_t) {
    *out = scale * clip_factor(std::sqrt(*from), norm_max);
  });
}

} // namespace troupe::cuda
