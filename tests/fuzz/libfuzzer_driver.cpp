// SPDX-License-Identifier: Apache-2.0
// A fuzz target as libFuzzer calls it. Source: https://llvm.org/docs/LibFuzzer.html
#include "tests/fuzz/fuzz_target.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static_cast<void>(troupe::fuzz::accepts(std::as_bytes(std::span{data, size})));
  return 0;
}
