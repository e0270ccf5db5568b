// SPDX-License-Identifier: Apache-2.0
// Why something refuses, for functions and for what coroutines await.
#pragma once

#include "actors/world/task.hpp"
#include "messages/errors/failure.hpp"

namespace troupe::test {

/// Why a function refuses; nothing if it does not.
template <class Function>
[[nodiscard]] error refusal_of(const Function& function) {
  try {
    function();
  } catch (const failure& failed) {
    return failed.reason();
  }
  return {};
}

/// Why what is awaited refuses; nothing if it does not.
template <class T>
[[nodiscard]] task<error> refusal_in(task<T> awaited) {
  error reason;
  try {
    static_cast<void>(co_await awaited);
  } catch (const failure& failed) {
    reason = failed.reason();
  }
  co_return reason;
}

} // namespace troupe::test
