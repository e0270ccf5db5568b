// SPDX-License-Identifier: Apache-2.0
// NCCL as a collective_library.
#pragma once

#include "actors/gpu/collective_library.hpp"

#include <memory>

namespace troupe {

/// NVIDIA's library, loaded by the first call: a job that trains without it needs no file of it.
/// Its communicators do not block: they join and fail while others look on. It takes one rank for
/// each GPU.
/// Errors: resource, naming the file that is missing; unimplemented, if this build knows nothing of
/// it.
[[nodiscard]] expected<std::shared_ptr<collective_library>> open_nccl();

} // namespace troupe
