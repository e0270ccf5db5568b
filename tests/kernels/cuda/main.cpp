// SPDX-License-Identifier: Apache-2.0
// The main function of the GPU tests: where there is no GPU, they are skipped.
#include "kernels/cuda/device.hpp"
#include "messages/errors/errc.hpp"

#include <cstdio>

#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/doctest.hpp"

int main(int argc, char** argv) {
  auto count = troupe::cuda::device_count();
  if (!count) {
    // A driver that is too old is as good as none.
    auto is_skipped = count.error().code == troupe::errc::resource;
    std::fprintf(stderr, "%s%s\n", is_skipped ? "skipped: " : "", count.error().message.c_str());
    return is_skipped ? 77 : 1;
  }
  if (*count == 0) {
    std::puts("skipped: no GPU here");
    return 77; // what Meson takes for skipped
  }
  return doctest::Context(argc, argv).run();
}
