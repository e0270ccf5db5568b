// SPDX-License-Identifier: Apache-2.0
// An awaitable with another form of its result.
#pragma once

#include <coroutine>
#include <utility>

namespace troupe {

/// A coroutine that awaits this in place of `inner` gets `convert(result of inner)`.
///
///     return converted{asker.template request<Reply>(to, question), [](expected<Reply> reply)
///     {...}};
template <class Awaitable, class Convert>
class converted {
public:
  converted(Awaitable inner, Convert convert)
    : inner_(std::move(inner)), convert_(std::move(convert)) {}

  [[nodiscard]] bool await_ready() const { return inner_.await_ready(); }

  void await_suspend(std::coroutine_handle<> waiter) { inner_.await_suspend(waiter); }

  auto await_resume() { return convert_(inner_.await_resume()); }

private:
  Awaitable inner_;
  Convert convert_;
};

} // namespace troupe
