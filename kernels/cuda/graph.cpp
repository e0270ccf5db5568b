// SPDX-License-Identifier: Apache-2.0
// Graphs by way of stream capture.
#include "kernels/cuda/graph.hpp"

#include "kernels/cuda/check.cuh"

#include <utility>

namespace troupe::cuda {

void graph::destroy::operator()(CUgraphExec_st* handle) const {
  static_cast<void>(cudaGraphExecDestroy(handle));
}

expected<graph> graph::capture(const context& on, const std::function<void()>& work) {
  auto* stream = on.stream().handle();
  if (auto used = detail::use(on.device().index); !used) return tl::unexpected(used.error());
  // Relaxed: memory may be allocated meanwhile, because the graph keeps what it was written with.
  TROUPE_TRY_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  on.keep_memory();
  work();
  auto memory = on.kept_memory();
  cudaGraph_t written = nullptr;
  auto ended = TROUPE_CHECK_CUDA(cudaStreamEndCapture(stream, &written));
  if (ended) ended = on.status();
  if (!ended) {
    if (written != nullptr) static_cast<void>(cudaGraphDestroy(written));
    return tl::unexpected(std::move(ended).error());
  }
  cudaGraphExec_t ready = nullptr;
  auto made = TROUPE_CHECK_CUDA(cudaGraphInstantiate(&ready, written, 0));
  static_cast<void>(cudaGraphDestroy(written));
  if (!made) return tl::unexpected(std::move(made).error());
  return graph{on, ready, std::move(memory)};
}

expected<void> graph::launch(const stream& on) const {
  if (auto used = detail::use(on.device_index()); !used) return used;
  return TROUPE_CHECK_CUDA(cudaGraphLaunch(handle_.get(), on.handle()));
}

} // namespace troupe::cuda
