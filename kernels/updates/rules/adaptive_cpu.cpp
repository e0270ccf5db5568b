// SPDX-License-Identifier: Apache-2.0
// The loops of the rules that learn from squared gradients.
#include "kernels/updates/rules/adaptive.hpp"

#include "kernels/updates/rules/block_loop.hpp"

namespace troupe::cpu {

TROUPE_COMPILE_RULE(rules::adagrad)
TROUPE_COMPILE_RULE(rules::rmsprop)
TROUPE_COMPILE_RULE(rules::centered_rmsprop)
TROUPE_COMPILE_RULE(rules::adadelta)

} // namespace troupe::cpu
