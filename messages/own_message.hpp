// SPDX-License-Identifier: Apache-2.0
// Messages of schemas that are not Troupe's: how actors of a trainer's author talk beside ours.
#pragma once

#include "messages/message_builder.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace troupe {

/// The `message_storage::which` of a message of another schema: no body of the envelope.
inline constexpr auto own_body = static_cast<wire::Envelope::Which>(0xffff);

/// Begins the root of a message of another schema (`messages/own.capnp`).
/// @param schema The type id of its struct. @returns Where the struct has to lie.
[[nodiscard]] capnp::AnyPointer::Builder begin_own_message(built_message& storage, uint64_t schema);

/// Troupe's messages lie in its envelope, which a trainer's author cannot extend. This builds a
/// `msg<T>` of any struct of any schema instead: immutable, shared, and free to refer to tensors
/// (`write_tensor(*storage, body.initGradient(), gradient)`), as all messages are.
///
/// Within a process such a message needs nothing else. To actors of other processes it goes if all
/// processes have added it to their `network_messages`. A viewer of a job's actors shows it as
/// "other".
template <class T>
struct own_message_builder {
  std::shared_ptr<built_message> storage = std::make_shared<built_message>();
  /// The fields to set.
  typename T::Builder body = begin_own_message(*storage, capnp::typeId<T>()).template initAs<T>();

  /// The message, which cannot be changed any more.
  [[nodiscard]] msg<T> finish() && {
    storage->body = capnp::AnyStruct::Reader(body.asReader());
    storage->which = own_body;
    storage->segments = storage->builder.getSegmentsForOutput();
    return msg<T>(std::move(storage));
  }
};

} // namespace troupe
