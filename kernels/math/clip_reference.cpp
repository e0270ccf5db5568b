// SPDX-License-Identifier: Apache-2.0
// Clipping by way of the plain norm and product.
#include "kernels/math/clip.hpp"

#include "kernels/math/elementwise.hpp"
#include "kernels/math/reduce.hpp"

namespace troupe::reference {

double global_norm(const context& on, std::span<const elements> arrays) {
  double sum = 0;
  for (const auto& array : arrays)
    sum += squared_norm(on, array);
  return std::sqrt(sum);
}

template <class T>
double clip_by_global_norm(const context& on, std::span<const std::span<T>> arrays,
                           double norm_max) {
  double sum = 0;
  for (auto array : arrays)
    sum += squared_norm(on, array);
  auto factor = static_cast<T>(clip_factor(std::sqrt(sum), norm_max));
  if (factor != 1)
    for (auto array : arrays)
      scale<T>(on, factor, array, array);
  return std::sqrt(sum);
}

template double clip_by_global_norm(const context&, std::span<const std::span<float>>, double);
template double clip_by_global_norm(const context&, std::span<const std::span<double>>, double);

} // namespace troupe::reference
