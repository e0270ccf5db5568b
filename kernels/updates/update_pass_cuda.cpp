// SPDX-License-Identifier: Apache-2.0
// The update of a variable on a GPU.
#include "kernels/updates/update_pass.hpp"

#include "kernels/cuda/context.hpp"
#include "kernels/updates/update_pass_definition.hpp"

namespace troupe {

template void prepare(const cuda::context&, variable_state&, const update_plan&);
template void update_variable(const cuda::context&, variable_state&, const update_plan&,
                              const gradient_mean&);
template double squared_norm(const cuda::context&, const variable_state&, const gradient_mean&);

} // namespace troupe
