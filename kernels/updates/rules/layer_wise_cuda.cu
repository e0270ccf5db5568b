// SPDX-License-Identifier: Apache-2.0
// The loops of rules that follow the norms of a variable on a GPU.
#include "kernels/updates/rule_kernels.cuh"
#include "kernels/updates/rules/layer_wise.hpp"

namespace troupe::cuda {

TROUPE_COMPILE_CUDA_LAYER_WISE_RULE(rules::lars)
TROUPE_COMPILE_CUDA_LAYER_WISE_RULE(rules::lamb)

} // namespace troupe::cuda
