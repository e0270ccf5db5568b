// SPDX-License-Identifier: Apache-2.0
// The loops of Adam and its relatives on a GPU.
#include "kernels/updates/rule_kernels.cuh"
#include "kernels/updates/rules/adam.hpp"

namespace troupe::cuda {

TROUPE_COMPILE_CUDA_RULE(rules::adam)
TROUPE_COMPILE_CUDA_RULE(rules::adamw)
TROUPE_COMPILE_CUDA_RULE(rules::amsgrad)
TROUPE_COMPILE_CUDA_RULE(rules::adamax)
TROUPE_COMPILE_CUDA_RULE(rules::nadam)

} // namespace troupe::cuda
