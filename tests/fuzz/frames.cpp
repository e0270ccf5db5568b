// SPDX-License-Identifier: Apache-2.0
// Bytes of a peer as a frame: segment table, segments, every pointer. A message must be
// accepted or refused in the same way wherever in memory it lies.
#include "messages/collective_message.hpp"
#include "messages/errors/assert.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/received_exactly.hpp"
#include "tests/messages/examples.hpp"

#include <cstring>
#include <optional>

namespace troupe::fuzz {

namespace {

// The frame with its last segment apart, as a link reads an array that is expected.
std::optional<received_bytes> in_two_pieces(std::span<const std::byte> frame) {
  constexpr size_t word_bytes = 8;
  uint32_t table[3] = {};
  if (frame.size() < 2 * word_bytes || frame.size() % word_bytes != 0) return std::nullopt;
  std::memcpy(table, frame.data(), sizeof table);
  auto bytes = word_bytes * size_t{table[2]};
  if (table[0] != 1 || bytes == 0 || bytes > frame.size() - 2 * word_bytes) return std::nullopt;
  auto whole = received_exactly(frame.first(frame.size() - bytes));
  auto array = received_exactly(frame.last(bytes));
  whole.array = array.frame;
  whole.array_owner = array.owner;
  return whole;
}

} // namespace

bool accepts(std::span<const std::byte> input) {
  static_cast<void>(read_part_beginning(received_exactly(input).frame));
  auto message = decode_any(received_exactly(input));
  if (auto apart = in_two_pieces(input)) {
    auto in_pieces = decode_any(std::move(*apart));
    TROUPE_ASSERT(in_pieces.has_value() == message.has_value(), input.size());
    TROUPE_ASSERT(!message || print(*in_pieces) == print(*message), input.size());
  }
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
