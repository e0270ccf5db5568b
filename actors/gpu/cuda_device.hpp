// SPDX-License-Identifier: Apache-2.0
// A GPU as a compute_device; only in builds with GPU kernels.
#pragma once

#include "actors/world/compute_device.hpp"
#include "kernels/cuda/context.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

/// Work that a stream is asked for again and again, with other values of the same kinds.
struct repeated_work {
  std::string name; ///< Tells apart what the values do not: a model's settings.
  std::span<const tensor>
    residents{};                    ///< As for `compute_stream::resident`, in places of their own.
  std::span<const tensor> inputs{}; ///< In the host's memory; copied each time.

  /// Queues the work, on values of the device, and waits for nothing. @returns Results on the
  /// device. Errors: as it pleases; may throw std::bad_alloc.
  std::function<expected<std::vector<tensor>>(
    const cuda::context& on, std::span<const tensor> residents, std::span<const tensor> inputs,
    const std::stop_token& stop)>
    queue;
};

/// A stream of a GPU, for code that computes there with the twins of namespace `cuda`.
class cuda_stream : public compute_stream {
public:
  /// The context that the twins run on. One that has failed is replaced once the stream has told
  /// so: ask for it anew for each piece of work.
  [[nodiscard]] virtual const cuda::context& context() const = 0;

  /// Queues work that comes again: the first time as it is; the second time it is captured in a
  /// graph, which is launched from then on, so that hundreds of small kernels cost the CPU one
  /// call. Work that cannot be captured is queued as it is each time. The bits are the same.
  /// @returns What `queue` returned, good until the next call only.
  /// Errors: as `queue`, `resident` and the stream; cancelled, once `stop` was asked to.
  [[nodiscard]] virtual expected<std::vector<tensor>> repeat(const repeated_work& work,
                                                             const std::stop_token& stop)
    = 0;
};

/// Opens a GPU. Its streams have memory of their own, which they keep for their next work.
/// @param index The 1 of "gpu:1". @param streams At least 1.
/// Errors: not_found if it is not there, saying how many there are; resource, unavailable.
[[nodiscard]] expected<std::shared_ptr<compute_device>> open_cuda_device(int index,
                                                                         uint32_t streams);

} // namespace troupe
