// SPDX-License-Identifier: Apache-2.0
// Goal: steps go on where memory is scarce or graphs are refused. Method: an emulated GPU, which
// can be told to lack either.
#include "tests/kernels/emulated_cuda/emulator.hpp"
#include "tests/tools/graph_steps.hpp"

using namespace troupe;
using namespace troupe::test;

size_t troupe::test::graphs_launched() {
  return emulated::graphs_launched();
}

namespace {

const auto model = small_model({17, 9});

/// So many bytes more than are taken, while it lives.
struct little_memory_left {
  explicit little_memory_left(size_t bytes) {
    emulated::set_memory_bytes(emulated::device_bytes() + bytes);
  }

  ~little_memory_left() { emulated::set_memory_bytes(size_t{1} << 30); }

  little_memory_left(const little_memory_left&) = delete;
  little_memory_left& operator=(const little_memory_left&) = delete;
};

} // namespace

TEST_SUITE("tools/emulated_graph") {
  TEST_CASE("a graph takes the memory that its stream kept for steps without one") {
    constexpr size_t examples = 512; // their layers are larger than what steps differ by
    auto device = fresh_gpu();
    REQUIRE(step_on(*device, model, 0, examples));
    auto before = graphs_launched();
    auto again = [&] {
      little_memory_left scarce{size_t{64} << 10};
      return step_on(*device, model, 1, examples);
    }();
    CHECK(graphs_launched() - before == 1);
    check_same(again, step_on(*fresh_gpu(), model, 1, examples));
  }

  TEST_CASE("where no graph can be made, steps go on without one, and it is not tried again") {
    auto device = fresh_gpu();
    REQUIRE(step_on(*device, model, 0));
    auto before = graphs_launched();
    emulated::refuse_graphs(true);
    auto again = step_on(*device, model, 1);
    emulated::refuse_graphs(false);
    check_same(again, step_on(*fresh_gpu(), model, 1));
    check_same(step_on(*device, model, 2), step_on(*fresh_gpu(), model, 2));
    CHECK(graphs_launched() == before);
  }
}
