// SPDX-License-Identifier: Apache-2.0
// A step of many small kernels, queued by one call.
#pragma once

#include "kernels/cuda/context.hpp"

#include <functional>
#include <memory>
#include <utility>

struct CUgraphExec_st;

namespace troupe::cuda {

/// Queueing a kernel costs the CPU some microseconds, more than a small one takes. A graph is a
/// queue of work that was written down once and is queued as a whole, as often as wanted, with the
/// same arguments: the same memory above all.
class graph {
public:
  /// Runs `work`, which queues kernels and copies on `on`, and writes them down in place of doing
  /// them.
  /// The graph has memory of its own for what `work` takes, as much as is in use at one time, and
  /// keeps it and the context. The arrays that `work` is given must stay in place as long as the
  /// graph.
  /// @pre `work` queues on this context alone, waits for nothing (asks for no number), reads no
  /// pageable memory of the host (so no sparse gradients), and has run before, so that cuBLAS is
  /// there if it needs it.
  /// Errors: failed_precondition, if something could not be written down; as the context, if it
  /// fails meanwhile; rethrows what `work` throws. Nothing is written down then, and the context
  /// is as good as before, unless its device is lost.
  [[nodiscard]] static expected<graph> capture(const context& on,
                                               const std::function<void()>& work);

  /// Queues all of it on the context's stream: no other one may use its memory.
  [[nodiscard]] expected<void> launch() const;

private:
  graph(const context& on, CUgraphExec_st* handle, buffer_pool memory)
    : handle_(handle, {on, std::move(memory)}) {}

  /// The context keeps the memory until the last launch is done: CUDA would wait for that.
  struct destroy {
    context on;
    buffer_pool memory;
    void operator()(CUgraphExec_st* handle) const;
  };

  std::unique_ptr<CUgraphExec_st, destroy> handle_;
};

} // namespace troupe::cuda
