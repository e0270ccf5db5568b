// SPDX-License-Identifier: Apache-2.0
// Bytes of a peer as a frame: segment table, segments, every pointer. A message must be
// accepted or refused in the same way wherever in memory it lies.
#include "messages/assert.hpp"
#include "messages/collective_message.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/received_exactly.hpp"
#include "tests/messages/examples.hpp"

namespace troupe::fuzz {

bool accepts(std::span<const std::byte> input) {
  static_cast<void>(read_part_beginning(received_exactly(input).frame));
  auto message = decode_any(received_exactly(input));
  auto elsewhere = decode_any(receive(input, 1));
  TROUPE_ASSERT(message.has_value() == elsewhere.has_value(), input.size());
  if (!message) {
    TROUPE_ASSERT(message.error() == elsewhere.error(), message.error().message,
                  elsewhere.error().message);
    return false;
  }
  TROUPE_ASSERT(print(*message) == print(*elsewhere), input.size());
  return true;
}

} // namespace troupe::fuzz
