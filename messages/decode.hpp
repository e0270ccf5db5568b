// SPDX-License-Identifier: Apache-2.0
// From the bytes of a peer to a message that can be trusted in form.
#pragma once

#include "messages/errors/errc.hpp"
#include "messages/msg.hpp"
#include "messages/own_schema.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace troupe {

/// One frame as it came in, and the owners of its memory.
struct received_bytes {
  std::span<const std::byte> frame;
  std::shared_ptr<const void> owner; ///< Keeps `frame` alive and unchanged.

  /// The frame's last segment, if that lies apart, where its receiver has use for it; aligned.
  std::span<const std::byte> array{};
  std::shared_ptr<const void> array_owner{}; ///< Keeps `array` alive and unchanged.
};

/// A message that has not been asked yet which one it is.
class any_msg {
public:
  explicit any_msg(std::shared_ptr<const message_storage> storage) : storage_(std::move(storage)) {}

  /// Which message it is.
  [[nodiscard]] wire::Envelope::Which which() const { return storage_->which; }

  /// The message as a `T`.
  /// Errors: type_mismatch if it is another one.
  template <class T>
  [[nodiscard]] expected<msg<T>> as() const {
    if (which() != body_of<T>) return mismatch(body_of<T>);
    return msg<T>(storage_);
  }

private:
  [[nodiscard]] tl::unexpected<error> mismatch(wire::Envelope::Which body) const;

  std::shared_ptr<const message_storage> storage_;
};

/// Nothing that a peer sends may throw, abort, read beyond the frame, or make the receiver work
/// longer than the frame is long. So everything is checked here, once: every pointer, text,
/// enumerator and limit, then what each message says about its tensors. After that, readers of the
/// message cannot fail and need no further checks. The message refers to the frame's memory and
/// shares its owner.
///
/// Cost: reads everything but the elements of tensors (of sparse gradients the row numbers too). A
/// frame that does not begin at a multiple of 8 bytes is copied first: receive into aligned memory.
/// Errors: malformed; limit_exceeded (`limits.hpp`); unimplemented if the peer speaks another
/// protocol version or sends a message that this build does not know.
[[nodiscard]] expected<any_msg> decode_any(received_bytes bytes);

/// `decode_any` for a receiver that knows which message must come.
/// Errors: as above; type_mismatch if it is another message.
template <class T>
[[nodiscard]] expected<msg<T>> decode(received_bytes bytes) {
  return decode_any(std::move(bytes)).and_then([](const any_msg& message) {
    return message.template as<T>();
  });
}

/// A message of a schema that is not Troupe's, which was received and checked.
struct received_own_message {
  const own_schema* schema = nullptr; ///< As it was found.
  std::shared_ptr<const message_storage> storage;
};

/// As `decode_any`, for a frame with the root `wire::OwnMessage`. Beside pointers, texts, lists and
/// enumerators, all tensors, slices and gradients at any depth are checked as in messages of ours,
/// and every union has a member that its schema knows.
/// Errors: malformed; limit_exceeded; unimplemented if `schemas` does not find the message.
[[nodiscard]] expected<received_own_message> decode_own(received_bytes bytes,
                                                        const own_schema_lookup& schemas);

/// Whether `decode_own` will take a message: its receiver would close the connection, so its sender
/// is told instead. Cost: reads what `decode_own` reads.
/// @pre It was built by `own_message_builder`, for the struct of `schema`.
/// Errors: malformed and limit_exceeded, naming the message.
[[nodiscard]] expected<void> check_own_message(const message_storage& built,
                                               const own_schema& schema);

} // namespace troupe
