// SPDX-License-Identifier: Apache-2.0
// Parcels as frames, and back.
#pragma once

#include "actors/net/frame_header.hpp"
#include "actors/net/parcel.hpp"
#include "messages/decode.hpp"
#include "messages/frame.hpp"

#include <optional>

namespace troupe {

class network_messages;

/// A parcel as it goes over a connection: the tensors of its message lie where they lay.
struct encoded_parcel {
  frame_header header; ///< The whole message's: `body_bytes` counts all of it.
  std::optional<message_frame> body;
};

/// Messages travel as they are. Errors, which CAF knows in many kinds, travel as `wire::Abort`: one
/// of ours as its code and text; one of CAF's as what `from_caf` makes of it, and `detail` says
/// which exit reason (1 + its number) or that the receiver is down (255), so that code that looks
/// for those still finds them.
/// @param known Messages of other schemas that may travel, too; null: none.
/// Errors: as `check_travels` and `message_frame::make`.
[[nodiscard]] expected<encoded_parcel> encode_parcel(const parcel& message,
                                                     const network_messages* known = nullptr);

/// @param at The node that the frame has come to. @param body Has `header.body_bytes` bytes.
/// @param known As for `encode_parcel`.
/// Errors: as `decode_any` and `decode_own`; malformed if the body is not what the header's content
/// needs.
[[nodiscard]] expected<parcel> decode_parcel(const node_address& at, const frame_header& header,
                                             received_bytes body,
                                             const network_messages* known = nullptr);

/// Whether a message goes from one node to another: for networks that hand it over as it is.
/// @param known As for `encode_parcel`.
/// @returns The bytes of its frame, if it is of another schema and goes in the lane of bulk; else
/// 0. Errors: unimplemented if it is of no schema, or of one that is not known: with the name of
/// its type and how to mend it; as `check_own_message` and `message_frame::make`.
[[nodiscard]] expected<uint64_t> check_travels(const parcel& message,
                                               const network_messages* known);

/// The error that goes out in place of a message that cannot be sent, so that its asker waits no
/// longer: of a request, the answer to it; of an answer, what takes its place; else nothing.
[[nodiscard]] std::optional<parcel> refusal_of(const parcel& message, const error& why);

} // namespace troupe
