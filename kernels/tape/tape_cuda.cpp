// SPDX-License-Identifier: Apache-2.0
// The tape on a GPU.
#include "kernels/tape/tape.hpp"

#include "kernels/tape/cuda_tape.hpp"
#include "kernels/tape/tape_operations.hpp"
#include "kernels/tape/tape_walk.hpp"

namespace troupe {

template class basic_tape<cuda::context>;

} // namespace troupe
