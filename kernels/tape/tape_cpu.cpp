// SPDX-License-Identifier: Apache-2.0
// The tape that replicas use on a CPU.
#include "kernels/tape/tape.hpp"

#include "kernels/tape/tape_operations.hpp"
#include "kernels/tape/tape_walk.hpp"

namespace troupe {

template class basic_tape<cpu::context>;

} // namespace troupe
