// SPDX-License-Identifier: Apache-2.0
// A GPU as a compute_device; only in builds with GPU kernels.
#pragma once

#include "actors/gpu/compute_device.hpp"
#include "kernels/cuda/context.hpp"

#include <cstdint>
#include <memory>

namespace troupe {

/// A stream of a GPU, for who computes there with the twins of namespace `cuda`.
class cuda_stream : public compute_stream {
public:
  /// What the twins run on. A context that has failed is replaced once the stream has told so: ask
  /// for it anew for each piece of work.
  [[nodiscard]] virtual const cuda::context& context() const = 0;
};

/// Opens a GPU. Its streams have memory of their own, which they keep for their next work.
/// @param index The 1 of "gpu:1". @param streams At least 1.
/// Errors: not_found if it is not there, saying how many there are; resource, unavailable.
[[nodiscard]] expected<std::shared_ptr<compute_device>> open_cuda_device(int index,
                                                                         uint32_t streams);

} // namespace troupe
