// SPDX-License-Identifier: Apache-2.0
// The one exception type of Troupe, for the code of users.
#pragma once

#include "messages/errors/errc.hpp"

#include <exception>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace troupe {

/// Inside Troupe a function that can fail returns `expected`. A replica function is the code of a
/// user, who would have to look at every reply, and whose own code may throw anyway: so what it
/// awaits throws a `failure` instead, and one that it does not catch ends the replica, by name.
class failure : public std::runtime_error {
public:
  explicit failure(error reason) : std::runtime_error(reason.message), reason_(std::move(reason)) {}

  [[nodiscard]] const error& reason() const { return reason_; }

private:
  error reason_;
};

/// Why the code of a user threw: a failure's reason, else what the exception says. A message may
/// have line ends, commands for a terminal and bytes that are not UTF-8; the error's is one line
/// that may be printed (`printable_line`). A thread that could not start is `resource`, and the
/// message names the limits.
[[nodiscard]] error reason_of(const std::exception_ptr& thrown);

/// The value, or its error as an exception.
template <class T>
T value_or_throw(expected<T> result) {
  if (!result) throw failure{std::move(result.error())};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

} // namespace troupe
