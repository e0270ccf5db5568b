// SPDX-License-Identifier: Apache-2.0
// What the language models begin with.
#pragma once

#include "kernels/tensor/random.hpp"
#include "kernels/tensor/tensor.hpp"

#include <cstdint>
#include <utility>

namespace troupe {

/// Values that a byte has.
inline constexpr int64_t byte_values = 256;

/// Normal values of mean 0, f32; the same for the same key.
[[nodiscard]] inline tensor normal_tensor(shape extents, double deviation, const random_key& key) {
  tensor result(dtype::f32, std::move(extents));
  random_stream stream{key};
  for (auto& value : result.mutable_values<float>())
    value = static_cast<float>(deviation * stream.normal());
  return result;
}

} // namespace troupe
