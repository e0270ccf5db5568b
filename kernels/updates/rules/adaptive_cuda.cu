// SPDX-License-Identifier: Apache-2.0
// The loops of rules that keep measures of the gradients on a GPU.
#include "kernels/updates/rule_kernels.cuh"
#include "kernels/updates/rules/adaptive.hpp"

namespace troupe::cuda {

TROUPE_COMPILE_CUDA_RULE(rules::adagrad)
TROUPE_COMPILE_CUDA_RULE(rules::rmsprop)
TROUPE_COMPILE_CUDA_RULE(rules::centered_rmsprop)
TROUPE_COMPILE_CUDA_RULE(rules::adadelta)

} // namespace troupe::cuda
