// SPDX-License-Identifier: Apache-2.0
// Printing shapes.
#include "kernels/tensor/shape.hpp"

namespace troupe {

std::string to_string(const shape& value) {
  std::string text = "[";
  for (size_t dim = 0; dim < value.rank(); ++dim) {
    if (dim > 0) text += ", ";
    text += std::to_string(value[dim]);
  }
  return text + "]";
}

} // namespace troupe
