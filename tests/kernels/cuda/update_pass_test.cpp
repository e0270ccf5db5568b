// SPDX-License-Identifier: Apache-2.0
// Goal: a variable that lies on a GPU is updated there as its owner would update it on the CPU.
// Method: the same updates in both places, by all rules and kinds of gradients of the host, bit for
// bit.
#include "tests/kernels/cuda/device_arrays.hpp"
#include "tests/kernels/updates/update_passes.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels/cuda/update_pass") {
  TEST_CASE_TEMPLATE("a variable on a GPU has the bits of one on the CPU", T, float, double) {
    auto send = [](const tensor& value) { return to_device(gpu(), value).value(); };
    auto fetch = [](const tensor& value) { return to_host(gpu(), value).value(); };
    check_all_updates<T>(gpu(), send, fetch);
    REQUIRE(gpu().status());
  }

  TEST_CASE("a gradient that lies on the GPU is taken where it lies") {
    drawn_arrays drawn;
    const shape extents{5, 3};
    variable_state mine{.value = drawn.next<float>(extents)};
    variable_state other{.value = to_device(gpu(), mine.value.clone()).value()};
    const update_plan plan{.rule = rules::sgd{}};
    auto here = drawn.next<float>(extents);
    const std::vector<gradient> near{here}, far{to_device(gpu(), here).value()};
    update_variable(cpu::context{}, mine, plan, {near});
    update_variable(gpu(), other, plan, {far});
    auto back = to_host(gpu(), other.value).value();
    CHECK(std::memcmp(back.data(), mine.value.data(), mine.value.bytes()) == 0);
    REQUIRE(gpu().status());
  }
}
