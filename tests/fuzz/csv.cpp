// SPDX-License-Identifier: Apache-2.0
// Bytes as tables: a CSV file with and without a header, and one of measured times.
#include "messages/errors/assert.hpp"
#include "simulation/distributions/trace_table.hpp"
#include "strategies/data/csv_file.hpp"
#include "tests/fuzz/datasets.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace troupe::fuzz {

bool accepts(std::span<const std::byte> input) {
  auto file = input_file::in_memory("input", input);
  static_cast<void>(reads(csv_dataset(file, {.texts = {"0"}, .has_header = false})));
  auto times = read_trace_table(text_of(input), "input");
  if (times) {
    TROUPE_ASSERT(times->mean() >= 0, times->mean());
    TROUPE_ASSERT(times->draw_count() > 0);
  }
  auto is_table = reads(csv_dataset(file));
  return is_table || times.has_value();
}

} // namespace troupe::fuzz
