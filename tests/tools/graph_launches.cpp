// SPDX-License-Identifier: Apache-2.0
// Counts the graphs that a real GPU launches: the linker gives us calls of CUDA's function.
#include "tests/tools/graph_steps.hpp"

#include <cuda_runtime.h>

#include <atomic>

static std::atomic<size_t> launched = 0;

size_t troupe::test::graphs_launched() {
  return launched;
}

// The linker's names, for --wrap=cudaGraphLaunch.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

cudaError_t __real_cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);

cudaError_t __wrap_cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  ++launched;
  return __real_cudaGraphLaunch(graph, stream);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
