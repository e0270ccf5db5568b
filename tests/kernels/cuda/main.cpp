// SPDX-License-Identifier: Apache-2.0
// The main function of the GPU tests: where there is no GPU, they are skipped.
#include "kernels/cuda/device.hpp"

#include <cstdio>

#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/doctest.hpp"

int main(int argc, char** argv) {
  auto count = troupe::cuda::device_count();
  if (!count) {
    std::fprintf(stderr, "%s\n", count.error().message.c_str());
    return 1;
  }
  if (*count == 0) {
    std::puts("skipped: no GPU here");
    return 77; // what Meson takes for skipped
  }
  return doctest::Context(argc, argv).run();
}
