// SPDX-License-Identifier: Apache-2.0
// The tape of a GPU, where this build has one.
#include "actors/gpu/differentiate.hpp"

#if TROUPE_CUDA
#  include "actors/gpu/cuda_device.hpp"
#endif

namespace troupe {

expected<step_on_stream> differentiate_on_gpu([[maybe_unused]] compute_stream& on,
                                              [[maybe_unused]] std::span<const tensor> variables,
                                              [[maybe_unused]] const differentiation& settings,
                                              [[maybe_unused]] const cuda_loss& loss) {
#if TROUPE_CUDA
  if (auto* gpu = dynamic_cast<cuda_stream*>(&on))
    return differentiate_with(gpu->context(), on, variables, settings, loss);
#endif
  return fail(errc::unimplemented, "there is no tape for " + to_string(on.where()) + " here");
}

} // namespace troupe
