// SPDX-License-Identifier: Apache-2.0
// Laying out frames. The framing: the number of segments less one and the words of each segment,
// all 32-bit little-endian, filled up to a whole word; then the segments.
#include "messages/frame.hpp"

#include "messages/limits.hpp"

namespace troupe {
namespace {

constexpr size_t word_bytes = sizeof(capnp::word);
constexpr std::byte zeros[word_bytes] = {};

} // namespace

expected<message_frame> message_frame::make(std::shared_ptr<const message_storage> message) {
  if (!message)
    return fail(errc::invalid_argument, "an empty message has no frame: make one first");
  message_frame result;
  if (!message->received_frame.empty()) {
    result.add_piece(message->received_frame);
  } else if (message->segments.size() == 0) {
    return fail(errc::invalid_argument,
                "a message of a schema of your own has no frame: it stays in its process");
  } else {
    auto segments = message->segments.size();
    if (segments > limits::segments_max)
      return fail(errc::limit_exceeded, "message of " + std::to_string(segments)
                                          + " segments, at most "
                                          + std::to_string(limits::segments_max)
                                          + " go into a frame: send fewer tensors");
    result.add_segment_table(*message);
    result.add_segments(*message);
  }
  if (result.bytes_ > limits::frame_bytes_max)
    return fail(errc::limit_exceeded, "message of " + std::to_string(result.bytes_)
                                        + " bytes, at most "
                                        + std::to_string(limits::frame_bytes_max)
                                        + " go into a frame: cut the variable into several");
  result.message_ = std::move(message);
  return result;
}

void message_frame::add_piece(std::span<const std::byte> piece) {
  if (piece.empty()) return;
  pieces_.push_back(piece);
  bytes_ += piece.size();
}

void message_frame::add_segment_table(const message_storage& message) {
  auto count = message.segments.size();
  auto table = std::make_shared<std::vector<uint32_t>>();
  table->reserve(count + 2);
  table->push_back(static_cast<uint32_t>(count - 1));
  for (auto segment : message.segments)
    table->push_back(static_cast<uint32_t>(segment.size()));
  if (table->size() % 2 != 0) table->push_back(0);
  add_piece(std::as_bytes(std::span(*table)));
  segment_table_ = std::move(table);
}

/// A segment that is a tensor's memory ends at a whole word, the tensor itself maybe before. What
/// lies between belongs to somebody else: it is neither read nor sent, zeros go out instead.
void message_frame::add_segments(const message_storage& message) {
  auto attached = message.attachments.begin();
  for (auto segment : message.segments) {
    auto bytes = std::as_bytes(std::span(segment.begin(), segment.size()));
    auto padding = size_t{0};
    if (attached != message.attachments.end() && attached->bytes.data() == bytes.data()) {
      padding = bytes.size() - attached->bytes.size();
      ++attached;
    }
    add_piece(bytes.first(bytes.size() - padding));
    add_piece(std::span(zeros).first(padding));
  }
}

std::vector<std::byte> flatten(const message_frame& frame) {
  std::vector<std::byte> bytes;
  bytes.reserve(frame.bytes());
  for (auto piece : frame.pieces())
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

} // namespace troupe
