// SPDX-License-Identifier: Apache-2.0
// Graphs by way of stream capture.
#include "kernels/cuda/graph.hpp"

#include "kernels/cuda/check.cuh"
#include "kernels/cuda/memory.hpp"

#include <limits>
#include <optional>
#include <utility>

namespace troupe::cuda {

namespace {

/// While it lives, a stream's work is written down in place of being done.
class recording {
public:
  recording(const context& on, const buffer_pool& memory)
    : on_(on), pool_before_(on.take_memory_from(memory)) {}

  recording(const recording&) = delete;
  recording& operator=(const recording&) = delete;

  ~recording() {
    cudaGraph_t written = nullptr;
    static_cast<void>(end(written));
    if (written != nullptr) static_cast<void>(cudaGraphDestroy(written));
    static_cast<void>(on_.take_memory_from(std::move(pool_before_)));
    on_.forgive();
  }

  // Relaxed: memory may be allocated meanwhile, because the graph keeps what it was written with.
  [[nodiscard]] expected<void> begin() {
    auto begun = TROUPE_CHECK_CUDA(
      cudaStreamBeginCapture(on_.stream().handle(), cudaStreamCaptureModeRelaxed));
    is_open_ = begun.has_value();
    return begun;
  }

  [[nodiscard]] expected<void> end(cudaGraph_t& written) {
    if (!std::exchange(is_open_, false)) return {};
    return TROUPE_CHECK_CUDA(cudaStreamEndCapture(on_.stream().handle(), &written));
  }

private:
  const context& on_;
  std::optional<buffer_pool> pool_before_;
  bool is_open_ = false;
};

} // namespace

void graph::destroy::operator()(CUgraphExec_st* handle) const {
  static_cast<void>(cudaSetDevice(on.device().index));
  static_cast<void>(cudaGraphExecDestroy(handle));
  on.keep_until_done(memory);
}

expected<graph> graph::capture(const context& on, const std::function<void()>& work) {
  if (auto used = detail::use(on.device().index); !used) return tl::unexpected(used.error());
  buffer_pool memory{std::numeric_limits<size_t>::max(), lasting_device_memory(on.device().index)};
  cudaGraph_t written = nullptr;
  auto ended = on.status();
  if (!ended) return tl::unexpected(std::move(ended).error());
  {
    recording work_of_stream{on, memory};
    if (auto begun = work_of_stream.begin(); !begun) return tl::unexpected(begun.error());
    work();
    ended = work_of_stream.end(written);
    if (ended) ended = on.status();
  }
  cudaGraphExec_t ready = nullptr;
  if (ended) ended = TROUPE_CHECK_CUDA(cudaGraphInstantiate(&ready, written, 0));
  if (written != nullptr) static_cast<void>(cudaGraphDestroy(written));
  if (!ended) return tl::unexpected(std::move(ended).error());
  return graph{on, ready, std::move(memory)};
}

expected<void> graph::launch() const {
  const auto& on = handle_.get_deleter().on;
  if (auto used = detail::use(on.device().index); !used) return used;
  return TROUPE_CHECK_CUDA(cudaGraphLaunch(handle_.get(), on.stream().handle()));
}

} // namespace troupe::cuda
