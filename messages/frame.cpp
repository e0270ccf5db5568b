// SPDX-License-Identifier: Apache-2.0
// Laying out frames. The framing: the number of segments less one and the words of each segment,
// all 32-bit little-endian, filled up to a whole word; then the segments.
#include "messages/frame.hpp"

#include "messages/checks/limits.hpp"

#include <capnp/message.h>

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

constexpr size_t word_bytes = sizeof(capnp::word);
constexpr std::byte zero_bytes[word_bytes] = {};

// Cap'n Proto's own limit.
constexpr uint64_t segment_words_max = (uint64_t{1} << 29) - 1;

size_t bytes_of(const message_storage& message) {
  size_t words = 0;
  for (auto segment : message.segments)
    words += segment.size();
  return words * word_bytes;
}

/// The message with all that it refers to, in as few segments as there can be.
std::shared_ptr<capnp::MallocMessageBuilder> pack(const message_storage& message) {
  capnp::ReaderOptions trusted;
  trusted.traversalLimitInWords = std::numeric_limits<uint64_t>::max();
  capnp::SegmentArrayMessageReader reader{message.segments, trusted};
  auto root = reader.getRoot<capnp::AnyPointer>();
  auto words = std::min(root.targetSize().wordCount + 1, segment_words_max); // and its pointer
  auto packed = std::make_shared<capnp::MallocMessageBuilder>(static_cast<capnp::uint>(words));
  packed->getRoot<capnp::AnyPointer>().set(root);
  return packed;
}

tl::unexpected<error> too_large(size_t bytes) {
  return fail(errc::limit_exceeded, "message of " + std::to_string(bytes) + " bytes, at most "
                                      + std::to_string(limits::frame_bytes_max)
                                      + " go into a frame: cut the variable into several");
}

} // namespace

expected<message_frame> message_frame::make(std::shared_ptr<const message_storage> message) {
  if (!message)
    return fail(errc::invalid_argument, "an empty message has no frame: make one first");
  if (message->is_on_device)
    return fail(errc::invalid_argument, "a message with an array on a device has no frame: have "
                                        "the stream copy it to the host first (to_host)");
  message_frame result;
  if (!message->received_frame.empty()) {
    result.add_piece(message->received_frame);
  } else {
    auto segments = message->segments;
    std::span<const attachment> attachments = message->attachments;
    if (segments.size() > limits::segments_max) {
      if (auto bytes = bytes_of(*message); bytes > limits::frame_bytes_max) return too_large(bytes);
      auto packed = pack(*message);
      segments = packed->getSegmentsForOutput();
      attachments = {};
      result.packed_ = std::move(packed);
    }
    result.add_segment_table(segments);
    result.add_segments(segments, attachments);
  }
  if (result.bytes_ > limits::frame_bytes_max) return too_large(result.bytes_);
  result.message_ = std::move(message);
  return result;
}

void message_frame::add_piece(std::span<const std::byte> piece) {
  if (piece.empty()) return;
  pieces_.push_back(piece);
  bytes_ += piece.size();
}

void message_frame::add_segment_table(segment_list segments) {
  auto count = segments.size();
  auto table = std::make_shared<std::vector<uint32_t>>();
  table->reserve(count + 2);
  table->push_back(static_cast<uint32_t>(count - 1));
  for (auto segment : segments)
    table->push_back(static_cast<uint32_t>(segment.size()));
  if (table->size() % 2 != 0) table->push_back(0);
  add_piece(std::as_bytes(std::span(*table)));
  segment_table_ = std::move(table);
}

/// A segment that is a tensor's memory ends at a whole word, the tensor itself maybe before. The
/// bytes between belong to another object: they are neither read nor sent, zeros go out instead.
void message_frame::add_segments(segment_list segments, std::span<const attachment> attachments) {
  auto attached = attachments.begin();
  for (auto segment : segments) {
    auto bytes = std::as_bytes(std::span(segment.begin(), segment.size()));
    auto padding = size_t{0};
    if (attached != attachments.end() && attached->bytes.data() == bytes.data()) {
      padding = bytes.size() - attached->bytes.size();
      ++attached;
    }
    add_piece(bytes.first(bytes.size() - padding));
    add_piece(std::span(zero_bytes).first(padding));
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
