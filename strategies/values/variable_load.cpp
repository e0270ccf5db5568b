// SPDX-License-Identifier: Apache-2.0
// Weighs variables: all alike, or by their bytes.
#include "strategies/values/variable_load.hpp"

namespace troupe {

variable_load equal_load() {
  return [](const shape&, dtype) { return 1.0; };
}

variable_load byte_size_load() {
  return [](const shape& extents, dtype type) {
    return static_cast<double>(extents.element_count()) * static_cast<double>(element_bytes(type));
  };
}

} // namespace troupe
