// SPDX-License-Identifier: Apache-2.0
// Goal: steps of the language model that a graph repeats have the bits of those that are queued one
// kernel after the other. Method: each step once on a stream that has seen such steps, and once on
// a fresh one; graphs are counted; the GPU may be emulated.
#include "tests/tools/graph_steps.hpp"

#include <cmath>
#include <stop_token>

using namespace troupe;
using namespace troupe::test;

namespace {

const auto model = small_model({17, 9});
const language_model_config small_transformer{.kind = model_kind::transformer,
                                              .context = 6,
                                              .hidden_dropout = 0.2,
                                              .layers = 2,
                                              .heads = 2,
                                              .width = 8};

} // namespace

TEST_SUITE("tools/gpu_graph") {
  TEST_CASE("from the second step on a graph is launched, and each step has its own bits") {
    language_model_config lookups_only = model; // nothing but the table, and what is made of it
    lookups_only.hidden_sizes = {};
    auto recomputed = small_transformer;
    recomputed.recompute = true;
    for (const auto& config : {model, lookups_only, small_transformer, recomputed}) {
      auto device = fresh_gpu();
      for (uint64_t step = 0; step < 5; ++step) {
        CAPTURE(step);
        auto before = graphs_launched();
        auto repeated = step_on(*device, config, step);
        CHECK(graphs_launched() - before == (step == 0 ? 0 : 1));
        check_same(repeated, step_on(*fresh_gpu(), config, step));
      }
    }
  }

  TEST_CASE("a step of another shape has a graph of its own") {
    auto device = fresh_gpu();
    auto before = graphs_launched();
    for (uint64_t step = 0; step < 6; ++step) {
      auto examples = step % 2 == 0 ? 16 : 7;
      check_same(step_on(*device, model, step, examples),
                 step_on(*fresh_gpu(), model, step, examples));
    }
    CHECK(graphs_launched() - before == 4);
  }

  TEST_CASE("each precision has a graph of its own, whatever the loss scale") {
    auto device = fresh_gpu();
    for (auto precision :
         {product_precision::full, product_precision::bf16, product_precision::f16})
      for (uint64_t step = 0; step < 3; ++step) {
        CAPTURE(to_string(precision));
        differentiation how{.precision = precision};
        if (precision == product_precision::f16) how.loss_scale = 512 << step;
        auto before = graphs_launched();
        auto repeated = step_on(*device, model, step, 16, how);
        CHECK(graphs_launched() - before == (step == 0 ? 0 : 1));
        check_same(repeated, step_on(*fresh_gpu(), model, step, 16, how));
      }
  }

  TEST_CASE("a loss scale that is too large for f16 is seen by a number beside the loss") {
    auto device = fresh_gpu();
    for (uint64_t step = 0; step < 4; ++step) {
      differentiation how{.precision = product_precision::f16, .loss_scale = 1024};
      if (step % 2 == 1) how.loss_scale = 0x1p60;
      auto result = step_on(*device, model, step, 16, how);
      REQUIRE(result);
      CHECK(std::isfinite(nats_of(result->loss)));
      CHECK((result->non_finite.values<double>()[0] > 0) == (step % 2 == 1));
    }
  }

  TEST_CASE("a step that is to stop is not launched") {
    auto device = fresh_gpu();
    for (uint64_t step = 0; step < 2; ++step)
      REQUIRE(step_on(*device, model, step));
    std::stop_source stop;
    stop.request_stop();
    auto before = graphs_launched();
    auto refused = step_on(*device, model, 2, 16, {.stop = stop.get_token()});
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::cancelled);
    CHECK(graphs_launched() == before);
    check_same(step_on(*device, model, 3), step_on(*fresh_gpu(), model, 3));
  }

  TEST_CASE("bytes that are none are refused as without a graph") {
    auto device = fresh_gpu();
    for (uint64_t step = 0; step < 2; ++step)
      REQUIRE(step_on(*device, model, step));
    auto batch = draw_batch(model, small_text, 16, {7, "batch"});
    batch.contexts.mutable_values<int64_t>()[5] = 256;
    auto refused
      = differentiate_on(device->stream(0), model, variables_of(model, 7), batch, {7, "dropout"});
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::invalid_argument);
  }

  TEST_CASE("a stream that begins anew writes its graph anew") {
    auto device = fresh_gpu();
    for (uint64_t step = 0; step < 2; ++step)
      REQUIRE(step_on(*device, model, step));
    static_cast<void>(device->stream(0).make(dtype::f32, {int64_t{1} << 44}));
    CHECK(!device->notify(0, [] {})); // tells of it, and begins anew
    for (uint64_t step = 2; step < 5; ++step) {
      auto before = graphs_launched();
      check_same(step_on(*device, model, step), step_on(*fresh_gpu(), model, step));
      CHECK(graphs_launched() - before == (step == 2 ? 0 : 1));
    }
  }
}
