// SPDX-License-Identifier: Apache-2.0
// The loops of gradient descent, plain, with momentum and by the sign.
#include "kernels/updates/rules/descent.hpp"

#include "kernels/updates/rules/block_loop.hpp"

namespace troupe::cpu {

TROUPE_COMPILE_RULE(rules::sgd)
TROUPE_COMPILE_RULE(rules::momentum)
TROUPE_COMPILE_RULE(rules::lion)

} // namespace troupe::cpu
