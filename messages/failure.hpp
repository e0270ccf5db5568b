// SPDX-License-Identifier: Apache-2.0
// The one exception type of Troupe, for the code of users.
#pragma once

#include "messages/errc.hpp"

#include <stdexcept>
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

} // namespace troupe
