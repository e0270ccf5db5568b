// SPDX-License-Identifier: Apache-2.0
// The memory behind a message, the same for every type of message.
#pragma once

#include "messages/envelope.capnp.h"

#include <capnp/any.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// Memory outside a message that the message refers to.
struct attachment {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner; ///< Keeps `bytes` alive.
};

/// A message is read thousands of times by many threads, so all that reading needs is found once,
/// when the message is finished or received, and nothing that it says changes after that.
struct message_storage {
  /// The struct that the message is: the body inside an envelope, or one of another schema. It has
  /// no traversal limit: received frames are checked before.
  capnp::AnyStruct::Reader body;

  /// Which body of an envelope it is; `own_body` for a struct of another schema.
  wire::Envelope::Which which = wire::Envelope::UNSET;

  /// The segments, if the message was built here, or received in two pieces of memory.
  kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments;

  /// The memory that segments refer to, in the order in which it was attached.
  std::vector<attachment> attachments;

  /// Some attachment is memory of a device, which no frame can hold.
  bool is_on_device = false;

  /// The whole frame as it came in, if the message was received in one piece.
  std::span<const std::byte> received_frame;

  /// The sender does not need it to arrive any more.
  mutable std::atomic<bool> recalled = false;
};

} // namespace troupe
