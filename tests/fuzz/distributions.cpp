// SPDX-License-Identifier: Apache-2.0
// A text as the expression of computing times. An accepted one must read the same as we write it,
// and draw times that a simulation can take.
#include "messages/errors/assert.hpp"
#include "simulation/distributions/distribution.hpp"
#include "tests/fuzz/fuzz_target.hpp"

#include <chrono>

namespace troupe::fuzz {

bool accepts(std::span<const std::byte> input) {
  auto text = text_of(input);
  if (text.find("trace") != text.npos) return false; // names a file, and a fuzzer should open none
  auto times = distribution::parse(text);
  if (!times) {
    TROUPE_ASSERT(!times.error().message.empty());
    return false;
  }
  auto again = distribution::parse(times->text());
  TROUPE_ASSERT(again.has_value(), times->text());
  TROUPE_ASSERT(again->text() == times->text(), again->text(), times->text());
  auto mean = times->mean();
  TROUPE_ASSERT(!mean || *mean >= 0, *mean, times->text());
  auto drawn = times->times(1);
  auto drawn_again = again->times(1);
  for (uint64_t draw = 0; draw < 4; ++draw) {
    auto time = drawn(draw % 2, draw / 2);
    TROUPE_ASSERT(time >= time.zero() && time <= std::chrono::seconds{1'000'000'000},
                  times->text());
    TROUPE_ASSERT(time == drawn_again(draw % 2, draw / 2), times->text());
  }
  return true;
}

} // namespace troupe::fuzz
