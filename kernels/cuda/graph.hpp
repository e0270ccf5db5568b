// SPDX-License-Identifier: Apache-2.0
// A step of many small kernels, queued by one call.
#pragma once

#include "kernels/cuda/context.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

struct CUgraphExec_st;

namespace troupe::cuda {

/// Queueing a kernel costs the CPU some microseconds, more than a small one takes. A graph is a
/// queue of work that was written down once and is queued as a whole, as often as wanted, with the
/// same arguments: the same memory above all.
class graph {
public:
  /// Runs `work`, which queues kernels and copies on `on`, and writes them down in place of doing
  /// them.
  /// The graph keeps all memory that `work` takes, and the context.
  /// @pre `work` queues on this context alone, waits for nothing (asks for no number), reads no
  /// pageable memory of the host (so no sparse gradients), and has run before, so that cuBLAS is
  /// there if it needs it.
  /// Errors: failed_precondition, if something could not be written down.
  [[nodiscard]] static expected<graph> capture(const context& on,
                                               const std::function<void()>& work);

  /// Queues all of it.
  [[nodiscard]] expected<void> launch(const stream& on) const;

private:
  graph(const context& on, CUgraphExec_st* handle, std::vector<std::shared_ptr<std::byte>> memory)
    : on_(on), memory_(std::move(memory)), handle_(handle) {}

  struct destroy {
    void operator()(CUgraphExec_st* handle) const;
  };

  context on_;
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::unique_ptr<CUgraphExec_st, destroy> handle_;
};

} // namespace troupe::cuda
