// SPDX-License-Identifier: Apache-2.0
// Stands for CUDA's header of this name: as much of it as Troupe's kernels use.
#pragma once

#include "kernels/tensor/dtype.hpp"

#include <cstdint>

struct __half {
  uint16_t bits;
};

inline __half __float2half_rn(float value) {
  return {troupe::to_float16(value).bits};
}

inline float __half2float(__half value) {
  return troupe::to_float(troupe::float16{value.bits});
}
