// SPDX-License-Identifier: Apache-2.0
// The place of each message in the envelope, and its name.
#pragma once

#include "messages/every_body.hpp"

#include <capnp/any.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <type_traits>

namespace troupe {

/// Where `T` stands in a list.
template <class T, class... Bodies>
[[nodiscard]] consteval size_t position_in(body_list<Bodies...>) {
  static_assert((std::is_same_v<T, Bodies> || ...), "the type is not a message");
  const bool is_here[] = {std::is_same_v<T, Bodies>...};
  return static_cast<size_t>(std::ranges::find(is_here, true) - std::begin(is_here));
}

/// The place of `T` in the envelope.
template <class T>
inline constexpr auto body_of = static_cast<wire::Envelope::Which>(position_in<T>(every_body{}));

/// The name of a body as the schema spells it ("pushGradient"); "unknown" if the schema has none.
[[nodiscard]] const char* body_name(wire::Envelope::Which which);

/// The body, whichever it is: all bodies share the envelope's only pointer.
[[nodiscard]] capnp::AnyStruct::Reader body_of_envelope(wire::Envelope::Reader envelope);

} // namespace troupe
