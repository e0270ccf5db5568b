// SPDX-License-Identifier: Apache-2.0
// Formulas that the CPU and a GPU compute alike are written once: TROUPE_HOST_DEVICE before a
// function lets kernels call it. (Functions that are constexpr need it not.)
#pragma once

#if defined(__CUDACC__)
#  define TROUPE_HOST_DEVICE __host__ __device__
#else
#  define TROUPE_HOST_DEVICE
#endif
