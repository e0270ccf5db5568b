// SPDX-License-Identifier: Apache-2.0
// Goal: where variables lie on the GPU of the replicas, a step of the language model has its batch
// and its loss cross the bus, and nothing that is as large as the variables. Method: the emulator
// counts bytes; jobs that differ in their steps alone.
#include "tests/kernels/emulated_cuda/emulator.hpp"
#include "tests/tools/gpu_job.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// Bytes that cross the bus in one more step of a job.
struct traffic {
  uint64_t up = 0;
  uint64_t down = 0;
};

traffic of_steps(language_job job, int gpus, uint64_t steps) {
  auto up = emulated::bytes_to_device(), down = emulated::bytes_to_host();
  for (int i = 0; i < gpus; ++i) {
    job.devices.push_back(gpu_of(i, 3));
    job.holding.push_back(gpu_of(i, 2));
  }
  CHECK(!learn(job, steps).failure);
  return {emulated::bytes_to_device() - up, emulated::bytes_to_host() - down};
}

traffic of_a_step(const language_job& job, int gpus = 1) {
  constexpr uint64_t added = 1;
  auto few = of_steps(job, gpus, 2), many = of_steps(job, gpus, 2 + added);
  return {(many.up - few.up) / added, (many.down - few.down) / added};
}

} // namespace

TEST_SUITE("tools/emulated_bus") {
  TEST_CASE(
    "what crosses the bus in a step is the batch and the loss, however large the model is") {
    constexpr uint64_t replicas = 3, examples = 16;
    for (const auto& [is_transformer, is_mirrored, gpus] :
         {std::tuple{false, false, 1}, {true, false, 1}, {true, true, 1}, {true, true, 2}}) {
      CAPTURE(is_transformer);
      CAPTURE(is_mirrored);
      CAPTURE(gpus);
      std::vector<traffic> seen;
      for (int64_t width : {8, 16}) {
        const language_model_config transformer{
          .kind = model_kind::transformer, .context = 5, .layers = 2, .heads = 2, .width = width};
        seen.push_back(of_a_step({.model = is_transformer ? transformer : small_model({width}),
                                  .is_mirrored = is_mirrored},
                                 gpus));
      }
      CHECK(seen[0].up == seen[1].up);
      CHECK(seen[0].down == seen[1].down);
      CHECK(seen[0].down == replicas * sizeof(float));
      // Bytes as numbers of 64 bits, and labels; with the order in which rows are added up.
      auto batch = examples * (is_transformer ? 5 + 5 : 3 + 1) * sizeof(int64_t);
      CHECK(seen[0].up < 4 * replicas * batch);
    }
  }

  TEST_CASE("a loss scale has one number more cross the bus, beside the loss") {
    CHECK(of_a_step({.precision = product_precision::f16}).down
          == 3 * (sizeof(float) + sizeof(double)));
  }
}
