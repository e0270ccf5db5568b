// SPDX-License-Identifier: Apache-2.0
// The spellings of CAF 0.17 that later versions changed, kept in one place: errors, message types,
// atoms.
#pragma once

#include "messages/errors/errc.hpp"
#include "messages/msg.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/error.hpp>
#include <caf/make_message.hpp> // caf/result.hpp uses it without including it
#include <caf/result.hpp>
#include <caf/typed_response_promise.hpp>

#include <utility>

// A msg<T> travels between actors of one process as it is; between nodes the link sends its frame,
// so CAF never serialises one.
template <class T>
struct caf::allowed_unsafe_message_type<troupe::msg<T>> : std::true_type {};

/// Allows a plain type as a message between the parts of one actor, or to the node's recorder.
#define TROUPE_LOCAL_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(type)

namespace troupe {

/// Our error as one of CAF's, which a request handler returns.
[[nodiscard]] caf::error to_caf(const error& reason);

/// Our result as one of CAF's, which a request handler returns.
template <class T>
[[nodiscard]] caf::result<T> to_result(expected<T> value) {
  if (!value) return to_caf(value.error());
  return std::move(*value);
}

/// Answers a request that was not answered at once with a result.
template <class T>
void deliver(caf::typed_response_promise<T> promise, expected<T> value) {
  value ? promise.deliver(std::move(*value)) : promise.deliver(to_caf(value.error()));
}

/// Keeps CAF from noting for its log which actor the calling thread runs, with a lock and a look
/// into a table for every message: ours has all that its log would have.
void leave_unlogged();

/// CAF's error as one of ours; none stays none. CAF's own errors become `unavailable` where a
/// receiver is gone, `deadline_exceeded` where it did not answer in time, `invalid_argument` where
/// the handle is empty, `user_code` where a handler has thrown, else `resource`.
[[nodiscard]] error from_caf(const caf::error& reason);

/// Whether an actor is gone because its node is, and did not end by itself.
[[nodiscard]] bool is_lost_node(const caf::error& reason);

} // namespace troupe
