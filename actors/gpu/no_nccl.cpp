// SPDX-License-Identifier: Apache-2.0
// The stand-in for NCCL in builds without it.
#include "actors/gpu/nccl_collectives.hpp"

namespace troupe {

expected<std::shared_ptr<collective_library>> open_nccl() {
  return fail(errc::unimplemented,
              "this build knows nothing of NCCL: build Troupe where nvcc and nccl.h are, with "
              "-Dnccl=enabled");
}

} // namespace troupe
