// SPDX-License-Identifier: Apache-2.0
// Bytes as a file of NumPy: header, types, numbers.
#include "strategies/data/npy_file.hpp"
#include "tests/fuzz/datasets.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace troupe::fuzz {

bool accepts(std::span<const std::byte> input) {
  auto file = input_file::in_memory("input", input);
  static_cast<void>(reads(npy_dataset(file, dtype::f64)));
  return reads(npy_dataset(file));
}

} // namespace troupe::fuzz
