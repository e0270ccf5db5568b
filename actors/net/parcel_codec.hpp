// SPDX-License-Identifier: Apache-2.0
// Parcels as frames, and back.
#pragma once

#include "actors/net/frame_header.hpp"
#include "actors/net/parcel.hpp"
#include "messages/decode.hpp"
#include "messages/frame.hpp"

#include <optional>

namespace troupe {

/// A parcel as it goes over a connection: the tensors of its message lie where they lay.
struct encoded_parcel {
  frame_header header; ///< Of the whole message: `body_bytes` is all of it.
  std::optional<message_frame> body;
};

/// Messages travel as they are. Errors, which CAF knows in many kinds, travel as `wire::Abort`: one
/// of ours as its code and text; one of CAF's as what `from_caf` makes of it, and `detail` says
/// which exit reason (1 + its number) or that the receiver is down (255), so that code that looks
/// for those still finds them.
/// Errors: unimplemented if the content is no message of Troupe's schemas; as
/// `message_frame::make`.
[[nodiscard]] expected<encoded_parcel> encode_parcel(const parcel& what);

/// @param at The node that the frame has come to. @param body Of `header.body_bytes` bytes.
/// Errors: as `decode_any`; malformed if the body is not what the header's content needs.
[[nodiscard]] expected<parcel> decode_parcel(const node_address& at, const frame_header& header,
                                             received_bytes body);

} // namespace troupe
