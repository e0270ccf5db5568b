// SPDX-License-Identifier: Apache-2.0
// Bytes of a peer as the only segment of a frame with a table that is right, so that nothing is
// spent on finding one. An accepted message must be readable to the end.
#include "messages/errors/assert.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/received_exactly.hpp"
#include "tests/messages/examples.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::fuzz {

bool accepts(std::span<const std::byte> input) {
  constexpr size_t word_bytes = 8;
  auto words = static_cast<uint32_t>(input.size() / word_bytes);
  std::vector<std::byte> frame(word_bytes * (size_t{words} + 1));
  std::memcpy(frame.data() + sizeof(uint32_t), &words, sizeof words);
  std::ranges::copy(input.first(word_bytes * words), frame.begin() + word_bytes);
  auto message = decode_any(received_exactly(frame));
  if (!message) {
    TROUPE_ASSERT(!message.error().message.empty());
    return false;
  }
  TROUPE_ASSERT(!print(*message).empty());
  return true;
}

} // namespace troupe::fuzz
