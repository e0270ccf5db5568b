// SPDX-License-Identifier: Apache-2.0
// Contexts: each twin of an operation takes the context of its own namespace first.
#pragma once

#include <cstddef>

namespace troupe::reference {

/// The plain, sequential twin: the oracle that the others are tested against.
struct context {};

} // namespace troupe::reference

namespace troupe::cpu {

/// The vectorised twin; loops over large arrays are shared between the threads of oneTBB's
/// current arena. The partition depends on the sizes alone, so results do not depend on the
/// threads.
struct context {
  /// Elements that one task works on; smaller arrays stay on the calling thread.
  size_t grain_elements = 16384;
};

} // namespace troupe::cpu

namespace troupe::cuda {

/// The twin on a GPU, in builds with CUDA: `kernels/cuda/context.hpp`.
class context;

} // namespace troupe::cuda
