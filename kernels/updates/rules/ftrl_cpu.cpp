// SPDX-License-Identifier: Apache-2.0
// The loop of FTRL.
#include "kernels/updates/rules/ftrl.hpp"

#include "kernels/updates/rules/block_loop.hpp"

namespace troupe::cpu {

TROUPE_COMPILE_RULE(rules::ftrl)

} // namespace troupe::cpu
