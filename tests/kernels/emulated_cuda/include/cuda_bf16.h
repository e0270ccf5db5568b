// SPDX-License-Identifier: Apache-2.0
// Stands for CUDA's header of this name: as much of it as Troupe's kernels use.
#pragma once

#include "kernels/tensor/dtype.hpp"

#include <cstdint>

struct __nv_bfloat16 {
  uint16_t bits;
};

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return {troupe::to_bfloat16(value).bits};
}

inline float __bfloat162float(__nv_bfloat16 value) {
  return troupe::to_float(troupe::bfloat16{value.bits});
}
