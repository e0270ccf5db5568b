// SPDX-License-Identifier: Apache-2.0
// Values for the tests of tapes.
#pragma once

#include "kernels/tensor/random.hpp"
#include "kernels/tensor/tensor.hpp"

#include <string_view>
#include <utility>

namespace troupe::test {

/// Normal values of a type, f32 or f64; the same for the same name.
template <class T>
[[nodiscard]] tensor drawn(shape extents, std::string_view name) {
  tensor result(dtype_of<T>, std::move(extents));
  random_stream stream{random_key{1, name}};
  for (auto& value : result.mutable_values<T>())
    value = static_cast<T>(stream.normal());
  return result;
}

} // namespace troupe::test
