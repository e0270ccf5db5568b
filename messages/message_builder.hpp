// SPDX-License-Identifier: Apache-2.0
// A message while it is being built, for the functions of messages/ that make messages.
#pragma once

#include "messages/checks/limits.hpp"
#include "messages/errors/errc.hpp"
#include "messages/msg.hpp"
#include "messages/payload.hpp"

#include <capnp/message.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {

/// A message that was built here. Its first segment lies inside, so that a small message is a
/// single allocation.
struct built_message final : message_storage {
  built_message();

  std::array<capnp::word, limits::first_segment_words> first_segment{};
  capnp::MallocMessageBuilder builder;
};

/// The kept form of a finished message: a copy of its only segment, if it has but one, else all.
/// Building takes ten times the memory of a token, and a thousand replicas wait at the same time.
[[nodiscard]] std::shared_ptr<const message_storage>
compact(std::shared_ptr<const built_message> finished);

/// Begins the envelope that every message lies in. @returns Where its body has to lie.
[[nodiscard]] capnp::AnyPointer::Builder begin_envelope(built_message& storage,
                                                        wire::Envelope::Which body);

/// Building is the only time at which a message may change: `finish` hands it over for good.
template <class T>
struct message_builder {
  std::shared_ptr<built_message> storage = std::make_shared<built_message>();
  /// The fields to set.
  typename T::Builder body = begin_envelope(*storage, body_of<T>).template initAs<T>();

  /// The message, which cannot be changed any more.
  [[nodiscard]] msg<T> finish() && {
    storage->body = capnp::AnyStruct::Reader(body.asReader());
    storage->which = body_of<T>;
    storage->segments = storage->builder.getSegmentsForOutput();
    return msg<T>(compact(std::move(storage)));
  }
};

/// Describes `tensor` in `target` and makes `storage` refer to its elements and keep them alive.
/// The elements are copied only if they are few (`limits::copied_bytes_max`) or do not begin at a
/// multiple of 8 bytes; those on a device never are, and `storage` has no frame then.
/// @pre `tensor.bytes` is what its extents and dtype need. On a device it is row-major and begins
/// at a multiple of 8 bytes. Errors: throws `failure` with limit_exceeded for more than
/// `limits::rank_max` dimensions.
void write_tensor(built_message& storage, wire::Tensor::Builder target, const tensor& value);

/// Describes a gradient, dense, sparse or none, as `write_tensor` does.
void write_gradient(built_message& storage, wire::Gradient::Builder target,
                    const optional_gradient& gradient);

/// Describes a gradient of another message. @param owner Keeps that message alive.
void write_gradient(built_message& storage, wire::Gradient::Builder target,
                    wire::Gradient::Reader gradient, const std::shared_ptr<const void>& owner);

/// Describes the state of an owner, its arrays as `write_tensor` does.
void write_state(built_message& storage, wire::VariableState::Builder target,
                 const variable_payload& state);

/// Describes the progress of a replica, its arrays as `write_tensor` does.
void write_progress(built_message& storage, wire::ReplicaProgress::Builder target,
                    const replica_progress& progress);

/// `line` without what is beyond `limits::text_bytes_max`, cut between two UTF-8 characters.
[[nodiscard]] std::string_view cut_text(std::string_view line);

/// Sets the `reason` of a message to `line`, cut where it is too long.
template <class Builder>
void write_reason(Builder body, std::string_view line) {
  auto text = cut_text(line);
  std::copy(text.begin(), text.end(),
            body.initReason(static_cast<capnp::uint>(text.size())).begin());
}

/// Sets the fields of a message for an error: `code`, `reason` and `throwSite`.
template <class Builder>
void write_error(Builder body, const error& reason) {
  body.setCode(static_cast<wire::Errc>(reason.code));
  write_reason(body, reason.message);
  if (reason.throw_site.empty()) return;
  auto text = cut_text(reason.throw_site);
  std::copy(text.begin(), text.end(),
            body.initThrowSite(static_cast<capnp::uint>(text.size())).begin());
}

} // namespace troupe
