// SPDX-License-Identifier: Apache-2.0
// Refusals of a user's call, by a failure with its reason.
#pragma once

#include "messages/errors/failure.hpp"

#include <fmt/format.h>
#include <string>
#include <utility>

namespace troupe {

/// Throws `failure` with one line that names the culprit and the mend.
template <class... Arguments>
[[noreturn]] void throw_failure(errc code, fmt::format_string<Arguments...> format,
                                Arguments&&... arguments) {
  throw failure{{code, fmt::format(format, std::forward<Arguments>(arguments)...)}};
}

/// Refuses a call unless what it needs holds.
inline void require(bool condition, std::string message) {
  if (!condition) throw failure{error{errc::invalid_argument, std::move(message)}};
}

} // namespace troupe
