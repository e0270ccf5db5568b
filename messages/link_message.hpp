// SPDX-License-Identifier: Apache-2.0
// The messages that links say for themselves, each made by one function.
#pragma once

#include "messages/errc.hpp"
#include "messages/msg.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Answers a message with a body that this build does not know.
/// @param body Discriminant of the body that was not understood.
[[nodiscard]] msg<wire::Unimplemented> make_unimplemented(uint16_t body);

/// Says why the link closes right after. A reason beyond `limits::text_bytes_max` is cut there.
[[nodiscard]] msg<wire::Abort> make_abort(errc code, std::string_view reason);

/// The node that begins a connection; the fields are those of `wire::Hello`.
struct greeting {
  std::string job;
  uint32_t nodes = 0;
  uint32_t node = 0;
  uint32_t incarnation = 0;
  std::chrono::nanoseconds heartbeat{0};
  uint64_t window = 0;

  bool operator==(const greeting&) const = default;
};

[[nodiscard]] msg<wire::Hello> make_hello(const greeting& who);
[[nodiscard]] greeting read_hello(wire::Hello::Reader hello);

/// Asks for the actor of that name. A name beyond `limits::text_bytes_max` is cut there.
[[nodiscard]] msg<wire::FindActor> make_find_actor(std::string_view name);

} // namespace troupe
