// SPDX-License-Identifier: Apache-2.0
// The loops of FTRL on a GPU.
#include "kernels/updates/rule_kernels.cuh"
#include "kernels/updates/rules/ftrl.hpp"

namespace troupe::cuda {

TROUPE_COMPILE_CUDA_RULE(rules::ftrl)

} // namespace troupe::cuda
