// SPDX-License-Identifier: Apache-2.0
// The reading end of a connection: bytes become frames, frames become messages.
#pragma once

#include "actors/net/array_places.hpp"
#include "actors/net/frame_header.hpp"
#include "messages/decode.hpp"

#include <boost/asio/buffer.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// Counts what of a connection's messages is still held somewhere, by their charges. Shared with
/// the messages, which may outlive the connection.
class retained_bytes {
public:
  /// @param on_release Told of bytes of a lane that are not held any more; from any thread, and not
  /// of every single message. May be empty.
  /// @param quantum So many are released before it is told again.
  retained_bytes(std::function<void(lane of, uint64_t bytes)> on_release, uint64_t quantum)
    : on_release_(std::move(on_release)), quantum_(quantum) {}

  void take(lane of, uint64_t bytes) { held(of) += bytes; }

  void release(lane of, uint64_t bytes);

  [[nodiscard]] uint64_t bytes(lane of) const { return held_[static_cast<size_t>(of)]; }

private:
  std::atomic<uint64_t>& held(lane of) { return held_[static_cast<size_t>(of)]; }

  std::function<void(lane, uint64_t)> on_release_;
  uint64_t quantum_;
  std::array<std::atomic<uint64_t>, lane_count> held_{};
  std::array<std::atomic<uint64_t>, lane_count> untold_{};
};

/// A whole frame that has come: a long message is one.
struct received_frame {
  frame_header header; ///< A long message's, too, is a `parcel` with all `body_bytes`.
  /// Aligned; the array at its end may lie where the receiver expects it. The message counts until
  /// its owner is not held, body or not.
  received_bytes body;
};

/// Small frames are read many at a time into one buffer and copied; of large ones all but the first
/// bytes is read to where the message will lie, in recycled memory; or where the receiver expects
/// the array that it ends with.
///
/// Thread: one at a time.
class inbox {
public:
  /// @param window Charges of messages of a lane that are taken before some must be let go of.
  /// @param arrays Where arrays are expected; null: nowhere.
  inbox(frame_limits limits, uint64_t window, std::shared_ptr<retained_bytes> retained,
        std::shared_ptr<array_places> arrays = nullptr);

  /// Where the next bytes belong, and how many there may be; never none.
  [[nodiscard]] boost::asio::mutable_buffer space();

  /// `bytes` have been read to there. @returns The frames that are whole now, in order.
  /// Errors: as `read_frame_header`; malformed for parts that belong to nothing; limit_exceeded if
  /// the sender goes beyond its credit. Nothing can be read after that.
  [[nodiscard]] expected<void> take(size_t bytes,
                                    const std::function<expected<void>(received_frame)>& on_frame);

  /// From now on messages of any kind are taken: the peer is one of us.
  void trust(frame_limits limits) { limits_ = limits; }

private:
  /// Memory of a message that is still coming.
  struct arriving {
    frame_header header;
    std::shared_ptr<std::byte> memory;
    uint64_t memory_bytes = 0; ///< Bytes in `memory`; the rest goes to `array`.
    array_place array{};
    uint64_t filled = 0;

    /// Where the next bytes belong, as far as they lie together.
    [[nodiscard]] std::span<std::byte> space() const;

    void append(std::span<const std::byte> bytes);
  };

  [[nodiscard]] size_t available() const { return end_ - begin_; }

  [[nodiscard]] bool needs_beginning(const frame_header& header) const;
  expected<arriving> make_room(const frame_header& header);
  expected<bool> begin_frame(const std::function<expected<void>(received_frame)>& on_frame);
  expected<void> end_frame(const std::function<expected<void>(received_frame)>& on_frame);
  [[nodiscard]] expected<std::shared_ptr<std::byte>> memory_for(const frame_header& header,
                                                                uint64_t bytes);

  frame_limits limits_;
  uint64_t window_;
  std::shared_ptr<retained_bytes> retained_;
  std::shared_ptr<array_places> arrays_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool expects_long_ = false;
  std::optional<arriving> message_; ///< Opened, and not all here.
  std::optional<arriving> frame_;   ///< Its header is here; of a part, the message's memory.
  uint64_t frame_left_ = 0;         ///< Bytes of the frame's body that are to come.
};

} // namespace troupe
