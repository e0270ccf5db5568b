// SPDX-License-Identifier: Apache-2.0
// Messages that wait to be written to one connection, and their order.
#pragma once

#include "actors/net/parcel_codec.hpp"

#include <boost/asio/buffer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

/// The largest window: credit is counted with a sign.
inline constexpr uint64_t window_bytes_max = uint64_t{1} << 62;

/// Frames that go out with one call: headers and memory of messages, which it keeps alive.
struct write_batch {
  static constexpr size_t frames_max = 32;

  std::array<frame_header_block, frames_max> headers;
  size_t frames = 0;
  std::vector<message_frame> bodies; ///< Their memory is written.
  std::vector<boost::asio::const_buffer> buffers;
  size_t bytes = 0;

  [[nodiscard]] bool is_full() const { return frames == frames_max; }

  void add_header(const frame_header& header);
  void add_piece(std::span<const std::byte> piece);
  void clear();

  /// The first `count` bytes are written.
  void drop_front(size_t count);
};

/// Tokens and heartbeats go ahead of gradients, between two parts of one if need be. The receiver
/// says how many bytes of messages it can keep; what is beyond that waits here, where it is no copy
/// of anything.
///
/// Thread: one at a time.
class outbox {
public:
  /// @param part_bytes_max Parts of messages are no longer. @param window Charges of messages of
  /// each lane that the receiver keeps before it must have let go of some.
  outbox(uint64_t part_bytes_max, uint64_t window);

  /// A frame of the link's own, which goes first and needs no credit.
  void add_signal(const frame_header& header, std::optional<message_frame> body = {});

  void add(encoded_parcel message);

  /// The receiver has let go of messages of a lane. @param bytes Their charges.
  void add_credit(lane of, uint64_t bytes);

  /// The receiver's window, once it has said so; nothing was sent before. A larger one than
  /// `window_bytes_max` counts as that.
  void set_window(uint64_t window);

  /// The next frames to write. @pre `batch` is empty. @returns Whether there are any.
  bool fill(write_batch& batch);

  /// The headers of messages that were recalled before they were sent to their end, since this was
  /// last asked.
  [[nodiscard]] std::vector<frame_header> take_recalled() { return std::exchange(recalled_, {}); }

  /// Drops all that waits. Only signals are sent after that, until `set_window`.
  void drop_all() { *this = outbox{part_bytes_max_, 0}; }

  /// Nothing waits, not even for credit.
  [[nodiscard]] bool is_empty() const;

  /// Whether a message of a lane waits, or is sent in part.
  [[nodiscard]] bool has_waiting(lane of) const {
    return !queues_[static_cast<size_t>(of)].empty();
  }

  /// Messages wait, and the receiver does not let go of others.
  [[nodiscard]] bool is_starved() const;

  /// Charges of the messages that wait, without the bytes that are written.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

private:
  struct signal {
    frame_header header;
    std::optional<message_frame> body;
  };

  /// How far a long message has been written.
  struct progress {
    uint64_t sent = 0;
    size_t piece = 0;
    size_t offset = 0; ///< In that piece.
  };

  [[nodiscard]] bool may_begin(lane of) const { return credit_[static_cast<size_t>(of)] > 0; }

  [[nodiscard]] std::deque<encoded_parcel>& queue(lane of) {
    return queues_[static_cast<size_t>(of)];
  }

  void drop_recalled();
  void take_whole(write_batch& batch, lane from);
  void take_part(write_batch& batch);
  void spend(const encoded_parcel& message);

  uint64_t part_bytes_max_;
  uint64_t window_;
  std::deque<signal> signals_;
  std::array<std::deque<encoded_parcel>, lane_count> queues_;
  std::array<int64_t, lane_count> credit_;
  std::optional<progress> begun_; ///< How far the first bulk message is written, once it has begun.
  std::vector<frame_header> recalled_;
  uint64_t bytes_ = 0;
};

} // namespace troupe
