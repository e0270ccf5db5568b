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
}
