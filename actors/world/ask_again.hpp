// SPDX-License-Identifier: Apache-2.0
// A request that is made again, where a link may have lost it.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/recording/records.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/sec.hpp>

#include <utility>

namespace troupe {

/// Sends a request, and has `settle` told the answer. A link may lose a request, or its answer: one
/// that leaves the node is sent again whenever `again_after` has passed without an answer. The
/// receiver must take one that comes twice for one. No request is lost inside a node.
/// @param again_after 0 = never: a reliable link loses nothing but with an actor.
/// @param settle `(expected<Reply>)`.
template <class Reply, class Self, class Handle, class Message, class Settle>
void ask_until_answered(Self self, const Handle& to, Message message, job_time again_after,
                        Settle settle) {
  auto answered = [settle](const Reply& reply) { settle(expected<Reply>(reply)); };
  auto failed = [settle](const caf::error& reason) {
    settle(expected<Reply>(tl::unexpected<error>(from_caf(reason))));
  };
  auto* receiver = caf::actor_cast<caf::abstract_actor*>(to);
  if (again_after == job_time{0} || dynamic_cast<caf::actor_proxy*>(receiver) == nullptr) {
    self
      ->request(to, caf::infinite, std::move(message)) // it answers, or is gone
      .then(answered, failed);
    return;
  }
  self->request(to, again_after, message)
    .then(answered, [self, to, message, again_after, settle, failed](const caf::error& reason) {
      if (reason != caf::sec::request_timeout) return failed(reason);
      ask_until_answered<Reply>(self, to, message, again_after, settle);
    });
}

} // namespace troupe
