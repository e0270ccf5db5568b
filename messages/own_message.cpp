// SPDX-License-Identifier: Apache-2.0
// The root of messages that lie outside of the envelope.
#include "messages/own_message.hpp"

#include "messages/own.capnp.h"

namespace troupe {

capnp::AnyPointer::Builder begin_own_message(built_message& storage, uint64_t schema) {
  auto root = storage.builder.initRoot<wire::OwnMessage>();
  root.setSchema(schema);
  return root.getBody();
}

} // namespace troupe
