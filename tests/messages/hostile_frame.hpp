// SPDX-License-Identifier: Apache-2.0
// Frames that Troupe itself would never send, for tests that refuse them.
#pragma once

#include "messages/decode.hpp"
#include "messages/envelope.capnp.h"
#include "tests/messages/examples.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <span>

namespace troupe {

/// The frame of an envelope that `fill` has filled.
template <class Fill>
[[nodiscard]] received_bytes hostile_frame(Fill fill) {
  capnp::MallocMessageBuilder message;
  auto envelope = message.initRoot<wire::Envelope>();
  envelope.setProtocol(wire::PROTOCOL_VERSION);
  fill(envelope);
  auto words = capnp::messageToFlatArray(message);
  return receive(std::as_bytes(std::span(words.begin(), words.size())));
}

/// A frame of one segment with the given words.
[[nodiscard]] inline received_bytes raw_frame(std::span<const uint64_t> segment) {
  std::vector<uint64_t> frame{static_cast<uint64_t>(segment.size()) << 32};
  frame.insert(frame.end(), segment.begin(), segment.end());
  return receive(std::as_bytes(std::span(frame)));
}

/// A pointer to a struct that begins `offset` words behind the pointer's end.
[[nodiscard]] constexpr uint64_t struct_pointer(int32_t offset, uint64_t data_words,
                                                uint64_t pointers) {
  return (static_cast<uint32_t>(offset) << 2) | data_words << 32 | pointers << 48;
}

/// A pointer to a list; `size_code` is 2 for bytes, 5 for words, 6 for pointers, 7 for structs:
/// their `count` is in words.
[[nodiscard]] constexpr uint64_t list_pointer(int32_t offset, uint64_t size_code, uint64_t count) {
  return (static_cast<uint32_t>(offset) << 2) | 1 | size_code << 32 | count << 35;
}

/// The envelope's only word of data.
[[nodiscard]] constexpr uint64_t envelope_data(wire::Envelope::Which which) {
  return uint64_t{wire::PROTOCOL_VERSION} | static_cast<uint64_t>(which) << 16;
}

/// The code of a refusal; `none` if `message` was not refused.
template <class T>
[[nodiscard]] errc refusal(const expected<T>& message) {
  return message ? errc::none : message.error().code;
}

} // namespace troupe
