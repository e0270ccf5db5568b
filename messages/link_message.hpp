// SPDX-License-Identifier: Apache-2.0
// The messages of links themselves, each made by one function.
#pragma once

#include "messages/decode.hpp"
#include "messages/errors/errc.hpp"
#include "messages/frame.hpp"
#include "messages/msg.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Says why the link closes right after. A reason beyond `limits::text_bytes_max` is cut there.
[[nodiscard]] msg<wire::Abort> make_abort(const error& reason);

/// A message of another schema that a node knows; the fields are those of `wire::KnownMessage`.
struct known_message {
  uint64_t schema = 0;
  uint64_t version = 0;
  std::string name;

  bool operator==(const known_message&) const = default;
};

/// The node that begins a connection; the fields are those of `wire::Hello`, but for the last.
struct greeting {
  std::string job;
  uint32_t nodes = 0;
  uint32_t node = 0;
  uint32_t incarnation = 0;
  std::chrono::nanoseconds heartbeat{0};
  uint64_t window = 0;
  std::vector<known_message> known{}; ///< Said before the hello.

  bool operator==(const greeting&) const = default;
};

[[nodiscard]] msg<wire::Hello> make_hello(const greeting& hello);
[[nodiscard]] greeting read_hello(wire::Hello::Reader hello);

/// The messages of other schemas that a node knows, as the body of a frame.
/// @pre At most `limits::own_messages_max`, with names of at most `limits::own_name_bytes_max`.
[[nodiscard]] message_frame make_known_messages(const std::vector<known_message>& known);

/// Errors: as `decode_own`; limit_exceeded.
[[nodiscard]] expected<std::vector<known_message>> read_known_messages(received_bytes bytes);

/// Asks for the actor of that name. A name beyond `limits::text_bytes_max` is cut there.
[[nodiscard]] msg<wire::FindActor> make_find_actor(std::string_view name);

/// Answers the message with which an actor begins. @param name As above.
[[nodiscard]] msg<wire::ActorMade> make_actor_made(std::string_view name);

} // namespace troupe
