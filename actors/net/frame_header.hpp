// SPDX-License-Identifier: Apache-2.0
// The header of every frame between two nodes.
#pragma once

#include "actors/net/address.hpp"
#include "messages/errors/errc.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

/// The kind of a frame.
enum class frame_kind : uint8_t {
  hello = 1,     ///< Body: wire::Hello. The first of a connection, in either direction.
  abort = 2,     ///< Body: wire::Abort. The last: why the sender closes the connection.
  parcel = 3,    ///< A message for an actor, whole. Body: its frame, if it has one.
  opening = 4,   ///< The beginning of a long message; its other parts follow in order.
  part = 5,      ///< More of the message that was opened last.
  credit = 6,    ///< Messages that the sender has received are forgotten; `id`: their charges.
  heartbeat = 7, ///< The sender is alive.
  recalled = 8,  ///< The message that was opened last has no more parts, and is to be forgotten.
  known = 9,     ///< Body: wire::KnownMessages. Before the hello, if the sender knows any.
};

/// The content of a parcel.
enum class content_code : uint8_t {
  none = 0,    ///< Nothing: the answer of an actor that has nothing to say.
  message = 1, ///< Body: the message.
  error = 2,   ///< A request failed. Body: wire::Abort, with what `parcel_codec` says of errors.
  exit = 3,    ///< CAF's exit message. Body: as of an error.
  down = 4,    ///< The actor `from` is no more. Body: as of an error.
  find = 5,    ///< Asks which actor goes by a name. Body: wire::FindActor.
  found = 6,   ///< The answer: it is `from`.
  own = 7,     ///< Body: a message of a trainer's own schema, with the root wire::OwnMessage.
};

/// Messages go ahead of gradients: a token must not wait behind 100 MB.
enum class lane : uint8_t {
  control = 0, ///< Whatever carries no array.
  bulk = 1,    ///< Gradients, variables, state.
};

/// How many lanes there are.
inline constexpr size_t lane_count = 2;

/// On the wire: 56 bytes, little-endian, without gaps, in this order, after the four bytes of
/// `frame_magic`. Fields that mean nothing for a kind are 0.
struct frame_header {
  frame_kind kind = frame_kind::heartbeat;
  content_code content = content_code::none; ///< Parcels and openings only.
  troupe::lane lane = troupe::lane::control; ///< Parcels, openings, parts and credit only.
  /// How CAF's own errors are told apart, which have no code of ours: see `parcel_codec`.
  uint8_t detail = 0;
  uint64_t body_bytes = 0;  ///< Bytes behind this header; a multiple of 8.
  uint64_t total_bytes = 0; ///< Bytes of the whole message, in an opening; else 0.
  actor_address from;
  uint64_t to = 0; ///< The actor, at the receiver's node.
  uint64_t id = 0; ///< As in `parcel`; of credit, bytes; of an actor's end, see `actor_ends`.

  bool operator==(const frame_header&) const = default;
};

/// Memory that a message takes at either end beside its bytes: handles, counts, places in queues.
inline constexpr uint64_t message_overhead_bytes = 512;

/// Bytes of a window that a message takes: also one without a body.
[[nodiscard]] constexpr uint64_t charge_of(const frame_header& header) {
  return std::max(header.body_bytes, header.total_bytes) + message_overhead_bytes;
}

inline constexpr uint32_t frame_magic = 0x31505254; // "TRP1"
inline constexpr size_t frame_header_bytes = 56;

using frame_header_block = std::array<std::byte, frame_header_bytes>;

/// Limits of the frames that a receiver takes.
struct frame_limits {
  uint64_t message_bytes_max = 0; ///< Body of a whole message.
  uint64_t part_bytes_max = 0;    ///< Body of an opening, or of a part.
  uint64_t hello_bytes_max = 0;   ///< Body of a hello or an abort, which a stranger may send.
};

[[nodiscard]] frame_header_block write_frame_header(const frame_header& header);

/// Errors: malformed if this is no header of a known kind, or its fields contradict each other;
/// limit_exceeded.
[[nodiscard]] expected<frame_header>
read_frame_header(std::span<const std::byte, frame_header_bytes> block, const frame_limits& limits);

} // namespace troupe
