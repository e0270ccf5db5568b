// SPDX-License-Identifier: Apache-2.0
// A message as bytes: Cap'n Proto's standard stream framing, laid out for a scatter-gather write.
#pragma once

#include "messages/errors/errc.hpp"
#include "messages/msg.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// The pieces of memory that make up a message's frame, in the order to write them. The tensors of
/// the message are among them where they lie; only the segment table is new memory. But each tensor
/// is a segment of its own, and a frame has at most `limits::segments_max`: a message of more, such
/// as an update of many gradients, is copied into few.
class message_frame {
public:
  /// The frame of a message. A message that was received is its own frame.
  /// Errors: invalid_argument if the message is empty, or refers to memory of a device;
  /// limit_exceeded if the frame would be larger than a receiver accepts
  /// (`limits::frame_bytes_max`).
  [[nodiscard]] static expected<message_frame> make(std::shared_ptr<const message_storage> message);

  /// The bytes to write, in their order. The frame keeps the memory alive.
  [[nodiscard]] std::span<const std::span<const std::byte>> pieces() const { return pieces_; }

  /// Sum over all pieces; a multiple of 8.
  [[nodiscard]] size_t bytes() const { return bytes_; }

  /// Whether the message is not needed any more (`msg::recall`).
  [[nodiscard]] bool is_recalled() const { return message_->recalled; }

private:
  using segment_list = kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>;

  message_frame() = default;
  void add_piece(std::span<const std::byte> piece);
  void add_segment_table(segment_list segments);
  void add_segments(segment_list segments, std::span<const attachment> attachments);

  std::shared_ptr<const message_storage> message_;
  std::shared_ptr<const void> packed_; ///< The message as it is sent, if it had to be copied.
  std::shared_ptr<const std::vector<uint32_t>> segment_table_;
  std::vector<std::span<const std::byte>> pieces_;
  size_t bytes_ = 0;
};

/// The frame of `message`, as `message_frame::make`.
template <class T>
[[nodiscard]] expected<message_frame> frame(const msg<T>& message) {
  return message_frame::make(message.owner());
}

/// All bytes of a frame in one place, for files and tests.
/// Cost: copies the frame.
[[nodiscard]] std::vector<std::byte> flatten(const message_frame& frame);

} // namespace troupe
