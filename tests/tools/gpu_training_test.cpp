// SPDX-License-Identifier: Apache-2.0
// Goal: replicas on a GPU learn what replicas on the CPU learn. Method: the same small job from the
// same seed on both, from the option's device to the gradients of each step; the GPU may be
// emulated.
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "tests/tools/gpu_job.hpp"
#include "tools/images/image_model.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

namespace {

const auto model = small_model();
const language_model_config small_transformer{.kind = model_kind::transformer,
                                              .context = 5,
                                              .hidden_dropout = 0.2,
                                              .layers = 2,
                                              .heads = 2,
                                              .width = 8};

double largest_difference(const tensor& a, const tensor& b) {
  double largest = 0;
  for (size_t i = 0; i < a.element_count(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a.values<float>()[i])
                                         - static_cast<double>(b.values<float>()[i])));
  return largest;
}

} // namespace

TEST_SUITE("tools/gpu_training") {
  TEST_CASE("one step on a GPU has the CPU's loss and gradients, but for roundings") {
    for (const auto& of : {model, small_transformer}) {
      CAPTURE(describe(of));
      auto variables = variables_of(of, 3);
      auto batch = draw_batch(of, small_text, 33, {3, "batch"});
      random_key key{3, "dropout"};
      auto here = differentiate_on(host_stream(), of, variables, batch, key);
      auto gpu = first_gpu(1);
      auto there = differentiate_on(gpu->stream(0), of, variables, batch, key);
      REQUIRE(here);
      REQUIRE_MESSAGE(there, (there ? std::string{} : there.error().message));
      finish(*gpu);
      // Sums of a few hundred products in another order: some units in the last place of a float.
      CHECK(nats_of(there->loss) == doctest::Approx(nats_of(here->loss)).epsilon(1e-6));
      REQUIRE(there->gradients.size() == here->gradients.size());
      for (size_t i = 1; i < here->gradients.size(); ++i)
        CHECK(largest_difference(std::get<tensor>(there->gradients[i]),
                                 std::get<tensor>(here->gradients[i]))
              < 1e-6);
    }
  }

  TEST_CASE("one step of the image model on a GPU has the CPU's loss and gradients, too") {
    const image_model of{{.filters = {3, 4}, .dense = 5}, 8, 9, 3};
    labelled_images images{8, 9, {}, {}};
    random_stream stream{{3, "images"}};
    for (size_t pixel = 0; pixel < size_t{20} * 8 * 9; ++pixel)
      images.pixels.push_back(static_cast<uint8_t>(stream.below(256)));
    for (uint8_t image = 0; image < 20; ++image)
      images.labels.push_back(image % 3);
    auto variables = variables_of(of, 3);
    auto batch = draw_images(images, 33, {3, "batch"});
    auto here = differentiate_on(host_stream(), of, variables, batch);
    auto gpu = first_gpu(1);
    auto there = differentiate_on(gpu->stream(0), of, variables, batch);
    REQUIRE(here);
    REQUIRE_MESSAGE(there, (there ? std::string{} : there.error().message));
    finish(*gpu);
    CHECK(nats_of(there->loss) == doctest::Approx(nats_of(here->loss)).epsilon(1e-6));
    REQUIRE(there->gradients.size() == here->gradients.size());
    for (size_t i = 0; i < here->gradients.size(); ++i)
      CHECK(largest_difference(std::get<tensor>(there->gradients[i]),
                               std::get<tensor>(here->gradients[i]))
            < 1e-5); // sums of thousands of products
  }

  TEST_CASE("a job on a GPU has the CPU's loss curve and comes to its variables") {
    constexpr uint64_t steps = 30;
    auto cpu = learn({}, steps);
    auto gpu = learn({.devices = {first_gpu(3)}}, steps); // three logical replicas on it
    CHECK_FALSE(cpu.failure);
    REQUIRE_MESSAGE(!gpu.failure, (gpu.failure ? gpu.failure->message : ""));
    REQUIRE(gpu.losses.size() == cpu.losses.size());
    CHECK(cpu.losses.back() < 0.9 * cpu.losses.front());
    // Adam divides by the root of what it has seen, which carries roundings of small gradients
    // further than they are large: hence the bound, a hundredth of what a step may change. On the
    // emulator, with plain loops for products, 3e-7 is the most that was seen.
    for (size_t i = 0; i < steps; ++i)
      CHECK(std::abs(gpu.losses[i] - cpu.losses[i]) < 1e-4);
    for (size_t i = 0; i < cpu.variables.size(); ++i)
      CHECK(largest_difference(gpu.variables[i], cpu.variables[i]) < 1e-4);
  }

  TEST_CASE("a job on a GPU has the CPU's loss curve in every precision, but for roundings") {
    constexpr uint64_t steps = 4;
    for (const auto& [of, precision] : {std::pair{model, product_precision::tf32},
                                        {model, product_precision::bf16},
                                        {model, product_precision::f16},
                                        {small_transformer, product_precision::bf16}}) {
      CAPTURE(to_string(precision));
      CAPTURE(describe(of));
      auto cpu = learn({.model = of, .precision = precision}, steps);
      auto gpu = learn({.model = of, .devices = {first_gpu(3)}, .precision = precision}, steps);
      CHECK_FALSE(cpu.failure);
      REQUIRE_MESSAGE(!gpu.failure, (gpu.failure ? gpu.failure->message : ""));
      REQUIRE(gpu.losses.size() == cpu.losses.size());
      // Sums in another order may round an operand of the next product the other way, and a device
      // may cut operands of tf32 off: hence the bound. On the emulator, 4e-5 is the most that was
      // seen.
      for (size_t i = 0; i < steps; ++i)
        CHECK(std::abs(gpu.losses[i] - cpu.losses[i]) < 1e-2);
    }
  }

  TEST_CASE("variables that lie on the replicas' GPU come to the bits of those of the host") {
    constexpr uint64_t steps = 4;
    for (const auto& [of, is_mirrored] :
         {std::pair{model, false}, {small_transformer, false}, {small_transformer, true}}) {
      CAPTURE(describe(of));
      CAPTURE(is_mirrored);
      language_job job{.model = of, .devices = {first_gpu(3)}, .is_mirrored = is_mirrored};
      auto here = learn(job, steps);
      job.devices = {first_gpu(3)};
      job.holding = {first_gpu(2)};
      auto there = learn(job, steps);
      REQUIRE_MESSAGE(!there.failure, (there.failure ? there.failure->message : ""));
      CHECK(there.losses == here.losses);
      for (size_t i = 0; i < here.variables.size(); ++i)
        CHECK(largest_difference(there.variables[i], here.variables[i]) == 0);
    }
  }

  TEST_CASE("one GPU adds the gradients of its three replicas to the CPU's bits") {
    constexpr uint32_t replicas = 3;
    auto world = world::threads({.seed = 7, .threads = 2});
    mirrored_strategy strategy{world,
                               {.devices = cpu_devices(replicas),
                                .compute_devices = {first_gpu(replicas)},
                                .gpus = gpus_here()}};
    auto own = [](uint32_t replica) { return variables_of(model, replica).front(); };
    auto there = strategy.run([&](replica_context& context) -> task<tensor> {
      auto value = own(context.replica_id_in_sync_group());
      auto work = [value](std::stop_token, compute_stream& on) {
        return value_or_throw(on.to_device(value));
      };
      auto computing = context.compute(std::move(work));
      auto left = co_await computing;
      co_return left;
    });
    CHECK(there.primary().device().kind == device_kind::cuda);
    std::vector<tensor> values;
    for (uint32_t i = 0; i < replicas; ++i)
      values.push_back(own(i));
    for (auto op : {reduce_op::sum, reduce_op::mean}) {
      auto reduced = strategy.extended().reduce_to(op, there, "cpu:0").primary();
      CHECK(largest_difference(reduced, reduce_arrays(op, values)) == 0);
    }
  }
}
