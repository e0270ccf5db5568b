// SPDX-License-Identifier: Apache-2.0
// The loops of Adam and its relatives.
#include "kernels/updates/rules/adam.hpp"

#include "kernels/updates/rules/block_loop.hpp"

namespace troupe::cpu {

TROUPE_COMPILE_RULE(rules::adam)
TROUPE_COMPILE_RULE(rules::adamw)
TROUPE_COMPILE_RULE(rules::amsgrad)
TROUPE_COMPILE_RULE(rules::adamax)
TROUPE_COMPILE_RULE(rules::nadam)

} // namespace troupe::cpu
