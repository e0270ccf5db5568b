// SPDX-License-Identifier: Apache-2.0
// Goal: steps of the language model that a graph repeats have the bits of those that are queued one
// kernel after the other. Method: an emulated GPU, which counts graphs; each step once on a stream
// that has seen such steps, and once on a fresh one.
#include "actors/gpu/cuda_device.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"
#include "tests/tools/small_language.hpp"

#include <cstring>
#include <stop_token>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

namespace {

const auto model = small_model({17, 9});

std::shared_ptr<compute_device> fresh_gpu() {
  auto opened = open_cuda_device(0, 1);
  REQUIRE_MESSAGE(opened, (opened ? std::string{} : opened.error().message));
  return *opened;
}

/// Everything of one step: other variables, another batch and other keys for each.
expected<step_on_stream> step_on(compute_device& device, const language_model_config& config,
                                 uint64_t step, size_t examples = 16,
                                 const std::stop_token& stop = {}) {
  auto batch = draw_batch(config, small_text, examples, {step, "batch"});
  auto result = differentiate_on(device.stream(0), config, variables_of(config, step), batch,
                                 {step, "dropout"}, stop);
  finish(device);
  return result;
}

/// So many bytes more than are taken, while it lives.
struct little_memory_left {
  explicit little_memory_left(size_t bytes) {
    emulated::set_memory_bytes(emulated::device_bytes() + bytes);
  }

  ~little_memory_left() { emulated::set_memory_bytes(size_t{1} << 30); }

  little_memory_left(const little_memory_left&) = delete;
  little_memory_left& operator=(const little_memory_left&) = delete;
};

bool has_same_bits(const tensor& a, const tensor& b) {
  return a.extents() == b.extents() && a.type() == b.type()
         && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

bool has_same_bits(const gradient& a, const gradient& b) {
  if (a.index() != b.index()) return false;
  if (const auto* dense = std::get_if<tensor>(&a))
    return has_same_bits(*dense, std::get<tensor>(b));
  const auto &rows = std::get<indexed_slices>(a), &others = std::get<indexed_slices>(b);
  return has_same_bits(rows.indices, others.indices) && has_same_bits(rows.values, others.values)
         && rows.dense_extents == others.dense_extents;
}

void check_same(const expected<step_on_stream>& one, const expected<step_on_stream>& other) {
  REQUIRE_MESSAGE(one, (one ? std::string{} : one.error().message));
  REQUIRE_MESSAGE(other, (other ? std::string{} : other.error().message));
  CHECK(has_same_bits(one->loss, other->loss));
  REQUIRE(one->gradients.size() == other->gradients.size());
  for (size_t i = 0; i < one->gradients.size(); ++i)
    CHECK(has_same_bits(one->gradients[i], other->gradients[i]));
}

} // namespace

TEST_SUITE("tools/gpu_graph") {
  TEST_CASE("from the second step on a graph is launched, and each step has its own bits") {
    language_model_config lookups_only = model; // nothing but the table, and what is made of it
    lookups_only.hidden_sizes = {};
    for (const auto& config : {model, lookups_only}) {
      auto device = fresh_gpu();
      for (uint64_t step = 0; step < 5; ++step) {
        CAPTURE(step);
        auto before = emulated::graphs_launched();
        auto repeated = step_on(*device, config, step);
        CHECK(emulated::graphs_launched() - before == (step == 0 ? 0 : 1));
        check_same(repeated, step_on(*fresh_gpu(), config, step));
      }
    }
  }

  TEST_CASE("a step of another shape has a graph of its own") {
    auto device = fresh_gpu();
    auto before = emulated::graphs_launched();
    for (uint64_t step = 0; step < 6; ++step) {
      auto examples = step % 2 == 0 ? 16 : 7;
      check_same(step_on(*device, model, step, examples),
                 step_on(*fresh_gpu(), model, step, examples));
    }
    CHECK(emulated::graphs_launched() - before == 4);
  }

  TEST_CASE("a step that is to stop is not launched") {
    auto device = fresh_gpu();
    for (uint64_t step = 0; step < 2; ++step)
      REQUIRE(step_on(*device, model, step));
    std::stop_source stop;
    stop.request_stop();
    auto before = emulated::graphs_launched();
    auto refused = step_on(*device, model, 2, 16, stop.get_token());
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::cancelled);
    CHECK(emulated::graphs_launched() == before);
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

  TEST_CASE("a graph takes the memory that its stream kept for steps without one") {
    constexpr size_t examples = 512; // whose layers are larger than what steps differ by
    auto device = fresh_gpu();
    REQUIRE(step_on(*device, model, 0, examples));
    auto before = emulated::graphs_launched();
    auto again = [&] {
      little_memory_left scarce{size_t{64} << 10};
      return step_on(*device, model, 1, examples);
    }();
    CHECK(emulated::graphs_launched() - before == 1);
    check_same(again, step_on(*fresh_gpu(), model, 1, examples));
  }

  TEST_CASE("where no graph can be made, steps go on without one, and it is not tried again") {
    auto device = fresh_gpu();
    REQUIRE(step_on(*device, model, 0));
    auto before = emulated::graphs_launched();
    emulated::refuse_graphs(true);
    auto again = step_on(*device, model, 1);
    emulated::refuse_graphs(false);
    check_same(again, step_on(*fresh_gpu(), model, 1));
    check_same(step_on(*device, model, 2), step_on(*fresh_gpu(), model, 2));
    CHECK(emulated::graphs_launched() == before);
  }

  TEST_CASE("a stream that begins anew writes its graph anew") {
    auto device = fresh_gpu();
    for (uint64_t step = 0; step < 2; ++step)
      REQUIRE(step_on(*device, model, step));
    static_cast<void>(device->stream(0).make(dtype::f32, {int64_t{1} << 44}));
    CHECK(!device->notify(0, [] {})); // tells of it, and begins anew
    for (uint64_t step = 2; step < 5; ++step) {
      auto before = emulated::graphs_launched();
      check_same(step_on(*device, model, step), step_on(*fresh_gpu(), model, step));
      CHECK(emulated::graphs_launched() - before == (step == 2 ? 0 : 1));
    }
  }
}
