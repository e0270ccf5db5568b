// SPDX-License-Identifier: Apache-2.0
// The main function of test programs that need a GPU: without one they are skipped, and say so.
#define DOCTEST_CONFIG_IMPLEMENT
#include "kernels/cuda/device.hpp"
#include "tests/doctest.hpp"

#include <cstdio>

int main(int argument_count, char** arguments) {
  constexpr int skipped = 77; // what Meson takes for "not run"
  auto count = troupe::cuda::device_count();
  if (!count || *count == 0) {
    std::printf("skipped: %s\n", count ? "there is no GPU here" : count.error().message.c_str());
    return skipped;
  }
  return doctest::Context{argument_count, arguments}.run();
}
