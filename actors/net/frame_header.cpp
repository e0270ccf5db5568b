// SPDX-License-Identifier: Apache-2.0
// Headers as bytes, and what a header must be for the rest of a frame to be read.
#include "actors/net/frame_header.hpp"

#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace troupe {

namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

/// The header as it lies in memory of this machine.
struct block_layout {
  uint32_t magic;
  uint8_t kind;
  uint8_t content;
  uint8_t lane;
  uint8_t detail;
  uint64_t body_bytes;
  uint64_t total_bytes;
  uint32_t from_node;
  uint32_t from_incarnation;
  uint64_t from_actor;
  uint64_t to;
  uint64_t id;
};

static_assert(sizeof(block_layout) == frame_header_bytes);

tl::unexpected<error> bad_header(std::string problem) {
  return fail(errc::malformed, "frame header: " + std::move(problem));
}

bool carries_message(frame_kind kind) {
  return kind == frame_kind::parcel || kind == frame_kind::opening;
}

uint64_t bytes_max(frame_kind kind, const frame_limits& limits) {
  switch (kind) {
  case frame_kind::hello:
  case frame_kind::abort:
  case frame_kind::known:
    return limits.hello_bytes_max;
  case frame_kind::parcel:
    return limits.message_bytes_max;
  case frame_kind::opening:
  case frame_kind::part:
    return limits.part_bytes_max;
  case frame_kind::credit:
  case frame_kind::heartbeat:
  case frame_kind::recalled:
    return 0;
  }
  return 0;
}

expected<void> check_sizes(const frame_header& header, const frame_limits& limits) {
  auto most = bytes_max(header.kind, limits);
  if (header.body_bytes > most)
    return fail(errc::limit_exceeded,
                fmt::format("frame with a body of {} bytes, at most {} are accepted",
                            header.body_bytes, most));
  if (header.total_bytes > limits.message_bytes_max)
    return fail(errc::limit_exceeded, fmt::format("message of {} bytes, at most {} are accepted",
                                                  header.total_bytes, limits.message_bytes_max));
  if (header.body_bytes % sizeof(uint64_t) != 0 || header.total_bytes % sizeof(uint64_t) != 0)
    return bad_header(
      fmt::format("{} and {} bytes are no whole words", header.body_bytes, header.total_bytes));
  auto is_opening = header.kind == frame_kind::opening;
  if (is_opening != (header.total_bytes > 0) || (is_opening && header.body_bytes == 0)
      || (is_opening && header.body_bytes >= header.total_bytes))
    return bad_header(fmt::format("kind {} with {} of {} bytes", static_cast<int>(header.kind),
                                  header.body_bytes, header.total_bytes));
  return {};
}

} // namespace

frame_header_block write_frame_header(const frame_header& header) {
  block_layout layout{.magic = frame_magic,
                      .kind = static_cast<uint8_t>(header.kind),
                      .content = static_cast<uint8_t>(header.content),
                      .lane = static_cast<uint8_t>(header.lane),
                      .detail = header.detail,
                      .body_bytes = header.body_bytes,
                      .total_bytes = header.total_bytes,
                      .from_node = header.from.at.node,
                      .from_incarnation = header.from.at.incarnation,
                      .from_actor = header.from.actor,
                      .to = header.to,
                      .id = header.id};
  return std::bit_cast<frame_header_block>(layout);
}

expected<frame_header> read_frame_header(std::span<const std::byte, frame_header_bytes> block,
                                         const frame_limits& limits) {
  block_layout layout;
  std::memcpy(&layout, block.data(), sizeof layout);
  if (layout.magic != frame_magic) return bad_header("the peer is no node of Troupe");
  if (layout.kind < static_cast<uint8_t>(frame_kind::hello)
      || layout.kind > static_cast<uint8_t>(frame_kind::known))
    return bad_header(fmt::format("no frame is of kind {}", layout.kind));
  if (layout.content > static_cast<uint8_t>(content_code::own))
    return bad_header(fmt::format("no content has the code {}", layout.content));
  if (layout.lane >= lane_count) return bad_header(fmt::format("there is no lane {}", layout.lane));
  frame_header header{.kind = static_cast<frame_kind>(layout.kind),
                      .content = static_cast<content_code>(layout.content),
                      .lane = static_cast<lane>(layout.lane),
                      .detail = layout.detail,
                      .body_bytes = layout.body_bytes,
                      .total_bytes = layout.total_bytes,
                      .from = {{layout.from_node, layout.from_incarnation}, layout.from_actor},
                      .to = layout.to,
                      .id = layout.id};
  if (!carries_message(header.kind) && header.content != content_code::none)
    return bad_header(fmt::format("kind {} carries no content", layout.kind));
  return check_sizes(header, limits).map([&] { return header; });
}

} // namespace troupe
