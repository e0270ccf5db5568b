// SPDX-License-Identifier: Apache-2.0
// The messages that links say for themselves, each made by one function.
#pragma once

#include "messages/errc.hpp"
#include "messages/msg.hpp"

#include <string_view>

namespace troupe {

/// Answers a message whose body this build does not know.
/// @param body Discriminant of the body that was not understood.
[[nodiscard]] msg<wire::Unimplemented> make_unimplemented(uint16_t body);

/// Says why the link closes right after. A reason beyond `limits::text_bytes_max` is cut there.
[[nodiscard]] msg<wire::Abort> make_abort(errc code, std::string_view reason);

} // namespace troupe
