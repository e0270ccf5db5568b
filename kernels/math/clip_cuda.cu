// SPDX-License-Identifier: Apache-2.0
// Clipping by way of the norm and the product on a GPU.
#include "kernels/cuda/launch.cuh"
#include "kernels/math/clip.hpp"
#include "kernels/math/elementwise.hpp"
#include "kernels/math/reduce.hpp"

#include <vector>

namespace troupe::cuda {

void clip_scale(const context& on, std::span<const double> squares, double norm_max, double scale,
                std::span<double> to) {
  TROUPE_ASSERT(squares.size() == 1 && to.size() == 1, squares.size(), to.size());
  for_each(on, 1, [=, from = squares.data(), out = to.data()] __device__(size_t) {
    *out = scale * clip_factor(std::sqrt(*from), norm_max);
  });
}

double global_norm(const context& on, std::span<const elements> arrays) {
  double sum = 0;
  for (auto one : squared_norms(on, arrays))
    sum += one;
  return std::sqrt(sum);
}

template <class T>
double clip_by_global_norm(const context& on, std::span<const std::span<T>> arrays,
                           double norm_max) {
  auto norm = global_norm(on, std::vector<elements>{arrays.begin(), arrays.end()});
  auto factor = static_cast<T>(clip_factor(norm, norm_max));
  if (factor != 1)
    for (auto array : arrays)
      scale<T>(on, factor, array, array);
  return norm;
}

template double clip_by_global_norm(const context&, std::span<const std::span<float>>, double);
template double clip_by_global_norm(const context&, std::span<const std::span<double>>, double);

} // namespace troupe::cuda
