// SPDX-License-Identifier: Apache-2.0
// The loops of rules that go down the gradient on a GPU.
#include "kernels/updates/rule_kernels.cuh"
#include "kernels/updates/rules/descent.hpp"

namespace troupe::cuda {

TROUPE_COMPILE_CUDA_RULE(rules::sgd)
TROUPE_COMPILE_CUDA_RULE(rules::momentum)
TROUPE_COMPILE_CUDA_RULE(rules::lion)

} // namespace troupe::cuda
