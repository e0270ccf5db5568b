// SPDX-License-Identifier: Apache-2.0
// The loops of gradient descent, plain and with momentum.
#include "kernels/updates/rules/descent.hpp"

#include "kernels/updates/rules/block_loop.hpp"

namespace troupe::cpu {

TROUPE_COMPILE_RULE(rules::sgd)
TROUPE_COMPILE_RULE(rules::momentum)

} // namespace troupe::cpu
