// SPDX-License-Identifier: Apache-2.0
// Messages of schemas that are not Troupe's: how actors of a trainer's author talk beside ours.
#pragma once

#include "messages/message_builder.hpp"

#include <memory>
#include <utility>

namespace troupe {

/// Troupe's messages lie in its envelope, which a trainer's author cannot extend. This builds a
/// `msg<T>` of any struct of any schema instead: immutable, shared, and free to refer to tensors
/// (`write_tensor(*storage, body.initGradient(), gradient)`), as all messages are.
///
/// Such a message is at home between the actors of one process: it has no frame, so `frame` refuses
/// it, and no link sends it. A viewer of a job's actors sees such a message as "other".
template <class T>
struct own_message_builder {
  std::shared_ptr<built_message> storage = std::make_shared<built_message>();
  typename T::Builder body = storage->builder.template initRoot<T>(); ///< The fields to set.

  /// The message, which cannot be changed any more.
  [[nodiscard]] msg<T> finish() && {
    storage->body = capnp::AnyStruct::Reader(body.asReader());
    return msg<T>(std::move(storage));
  }
};

} // namespace troupe
