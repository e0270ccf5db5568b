// SPDX-License-Identifier: Apache-2.0
// The same all-reduce by Gloo, one process for each rank.
//
// gloo_all_reduce RANK RANKS BYTES ROUNDS FOLDER HOST   rank 0 prints the seconds of each round,
// each rank the processor's seconds of all; HOST is this rank's address
#include "benchmarks/processor_time.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <vector>

int main(int count, char** arguments) {
  if (count < 7) return EXIT_FAILURE;
  auto rank = std::atoi(arguments[1]);
  auto ranks = std::atoi(arguments[2]);
  auto elements = static_cast<size_t>(std::atoll(arguments[3]) / 4);
  auto rounds = std::atoi(arguments[4]);
  gloo::transport::tcp::attr where;
  where.hostname = arguments[6];
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store{arguments[5]};
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  std::vector<float> own(elements, 1);
  std::vector<float> sum(elements);
  auto used = processor_seconds();
  for (int i = 0; i < rounds; ++i) {
    auto begin = std::chrono::steady_clock::now();
    gloo::AllreduceOptions options{context};
    options.setInput(own.data(), elements);
    options.setOutput(sum.data(), elements);
    options.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (rank == 0) std::printf("%.9f\n", took.count());
  }
  std::printf("processor %.9f\n", processor_seconds() - used);
}
