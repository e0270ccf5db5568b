// SPDX-License-Identifier: Apache-2.0
// A message on its way between two nodes.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/net/address.hpp"

#include <caf/message.hpp>

#include <cstdint>
#include <memory>

namespace troupe {

/// A message in its envelope: what CAF hands from one mailbox to another, with addresses in place
/// of pointers.
struct parcel {
  enum class content_kind : uint8_t {
    message, ///< For the actor `to`.
    down,    ///< The actor `from` is no more; `content` holds the `caf::error` that says why.
    /// Asks which actor goes by the name in `content`, a `std::string`; `id` numbers the question.
    find,
    found, ///< The actor `from` does; `id` is that of the question, `content` is empty.
  };

  content_kind kind = content_kind::message;
  actor_address to;   ///< Actor 0: the node itself.
  actor_address from; ///< Actor 0: the sender wants no answer, or is the node itself.
  /// A message's number in CAF, which says whether it is a request, a response, or urgent.
  uint64_t id = 0;
  caf::message content;
  /// A parcel that has come over a connection counts there until this is not held any more.
  std::shared_ptr<const void> charge{};
};

/// Why an actor ended, by the content of the news; none, if it does not say so.
[[nodiscard]] inline caf::error reason_in(const caf::message& down) {
  return down.match_elements<caf::error>() ? down.get_as<caf::error>(0) : caf::error{};
}

} // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::parcel)
