// SPDX-License-Identifier: Apache-2.0
// The tape that replicas use on a GPU.
#pragma once

#include "kernels/cuda/context.hpp"
#include "kernels/tape/tape.hpp"

namespace troupe {

/// `basic_tape` with its parameters, constants and results on the context's device; indices and
/// labels are tensors of the host. Operations are queued and return at once, forward and back. A
/// failure of the context is one of the tape.
///
///     cuda_tape t{stop, context};
///
/// Errors: throws std::bad_alloc, as the tape on a CPU, if there is no memory left.
using cuda_tape = basic_tape<cuda::context>;

extern template class basic_tape<cuda::context>;

} // namespace troupe
