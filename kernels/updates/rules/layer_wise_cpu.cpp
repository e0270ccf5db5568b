// SPDX-License-Identifier: Apache-2.0
// The loops of the layer-wise rules.
#include "kernels/updates/rules/layer_wise.hpp"

#include "kernels/updates/rules/block_loop.hpp"

namespace troupe::cpu {

TROUPE_COMPILE_LAYER_WISE_RULE(rules::lars)
TROUPE_COMPILE_LAYER_WISE_RULE(rules::lamb)

} // namespace troupe::cpu
