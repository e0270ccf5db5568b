// SPDX-License-Identifier: Apache-2.0
// Actors that are made here because another process asks for them.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/net/finder.hpp"
#include "messages/failure.hpp"
#include "messages/link_message.hpp"

#include <caf/actor_addr.hpp>
#include <caf/exit_reason.hpp>
#include <caf/result.hpp>
#include <caf/send.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace troupe {

/// Asked with the message that an actor is to begin with, it makes one.
template <class Start>
using maker_actor
  = caf::typed_actor<typename caf::replies_to<msg<Start>>::template with<msg<wire::ActorMade>>>;

/// What a maker has made, by links: an actor that ends is forgotten, and all end with the maker.
struct maker_state {
  static inline const char* name = "maker";

  std::shared_ptr<node> here;
  std::string kind;
  uint64_t count = 0;
  std::set<caf::actor_addr> made{};

  /// "trainer, made 3". An actor by this name is published until it ends.
  [[nodiscard]] std::string publish(const caf::strong_actor_ptr& actor) {
    made.insert(caf::actor_cast<caf::actor_addr>(actor));
    auto called = kind + ", made " + std::to_string(count++);
    publish_for_finders(*here, called, actor);
    return called;
  }
};

template <class Start>
using maker_pointer = typename maker_actor<Start>::template stateful_pointer<maker_state>;

/// Makes actors of one kind for other processes. One that `make` throws at is none, and the asker
/// is told why.
/// @param make `Handle make(const msg<Start>&)`.
template <class Start, class Make>
typename maker_actor<Start>::behavior_type
maker(maker_pointer<Start> self, std::shared_ptr<node> here, std::string kind, Make make) {
  self->state.here = std::move(here);
  self->state.kind = std::move(kind);
  self->set_exit_handler([self](const caf::exit_msg& exit) {
    if (self->state.made.erase(exit.source) == 0) self->quit(exit.reason);
  });
  return {[self, make](const msg<Start>& start) -> caf::result<msg<wire::ActorMade>> {
    try {
      auto actor = caf::actor_cast<caf::strong_actor_ptr>(make(start));
      if (!actor)
        return to_caf({errc::failed_precondition, "no actor was made: the handle is empty"});
      self->link_to(actor);
      return make_actor_made(self->state.publish(actor));
    } catch (...) {
      return to_caf(reason_of(std::current_exception()));
    }
  }};
}

/// Holds a maker. When it goes, the actors that were made end.
class actor_offer {
public:
  explicit actor_offer(caf::strong_actor_ptr maker) : maker_(std::move(maker)) {}

  actor_offer(actor_offer&&) = default;
  actor_offer(const actor_offer&) = delete;
  actor_offer& operator=(const actor_offer&) = delete;

  ~actor_offer() {
    if (maker_)
      caf::anon_send_exit(caf::actor_cast<caf::actor>(maker_), caf::exit_reason::user_shutdown);
  }

private:
  caf::strong_actor_ptr maker_;
};

} // namespace troupe
