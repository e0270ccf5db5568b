// SPDX-License-Identifier: Apache-2.0
// Bytes of another node: the header of a frame, and the rest as its body. An accepted one must be
// sendable again, and be the same then.
#include "actors/net/network_messages.hpp"
#include "actors/net/parcel_codec.hpp"
#include "messages/errors/assert.hpp"
#include "tests/fuzz/fuzz_target.hpp"
#include "tests/fuzz/received_exactly.hpp"
#include "tests/messages/trial_messages.hpp"

#include <algorithm>

namespace troupe::fuzz {

namespace {

// Messages of a trainer's own that travel, too.
const network_messages& known() {
  static const network_messages messages = [] {
    network_messages result;
    result.add<trial::Opinion>("trial.Opinion").add<trial::Count>("trial.Count");
    return result;
  }();
  return messages;
}

} // namespace

bool accepts(std::span<const std::byte> input) {
  constexpr frame_limits limits{
    .message_bytes_max = 1 << 20, .part_bytes_max = 1 << 16, .hello_bytes_max = 1 << 12};
  if (input.size() < frame_header_bytes) return false;
  frame_header_block block{};
  std::ranges::copy(input.first(frame_header_bytes), block.begin());
  auto header = read_frame_header(block, limits);
  if (!header) {
    TROUPE_ASSERT(!header.error().message.empty());
    return false;
  }
  TROUPE_ASSERT(write_frame_header(*header) == block);
  auto body = input.subspan(frame_header_bytes);
  // The inbox reads so many bytes and no other number.
  if (header->body_bytes != body.size()) return false;
  constexpr node_address here{1, 1};
  auto parcel = decode_parcel(here, *header, received_exactly(body), &known());
  if (!parcel) return false;
  TROUPE_ASSERT(!caf::to_string(parcel->content).empty());
  auto sent = encode_parcel(*parcel, &known());
  TROUPE_ASSERT(sent.has_value(), sent.error().message);
  auto again_body = sent->body ? flatten(*sent->body) : std::vector<std::byte>{};
  TROUPE_ASSERT(again_body.size() == sent->header.body_bytes);
  auto again = decode_parcel(here, sent->header, received_exactly(again_body), &known());
  TROUPE_ASSERT(again.has_value());
  TROUPE_ASSERT(again->kind == parcel->kind);
  TROUPE_ASSERT(again->id == parcel->id, again->id, parcel->id);
  TROUPE_ASSERT(caf::to_string(again->content) == caf::to_string(parcel->content));
  return true;
}

} // namespace troupe::fuzz
