// SPDX-License-Identifier: Apache-2.0
// Actors that are made here because another process asks for them.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/net/finder.hpp"
#include "actors/net/remote_proxy.hpp"
#include "messages/errors/failure.hpp"
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

/// The actors that a maker has made and that have not ended yet. They end with this state, which
/// CAF destroys when the maker ends, for whatever reason.
struct maker_state {
  static inline const char* name = "maker";

  std::shared_ptr<node> here{};
  uint64_t count = 0;
  std::set<caf::actor_addr> made{};

  maker_state() = default;
  maker_state(const maker_state&) = delete;
  maker_state& operator=(const maker_state&) = delete;

  ~maker_state() {
    for (const auto& one : made)
      if (auto alive = caf::actor_cast<caf::actor>(one))
        caf::anon_send_exit(alive, caf::exit_reason::user_shutdown);
  }

  /// "made 3 by 812". An actor by this name is published until it ends.
  [[nodiscard]] std::string publish(const caf::strong_actor_ptr& actor, uint64_t maker) {
    made.insert(caf::actor_cast<caf::actor_addr>(actor));
    auto called = "made " + std::to_string(count++) + " by " + std::to_string(maker);
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
typename maker_actor<Start>::behavior_type maker(maker_pointer<Start> self,
                                                 std::shared_ptr<node> here, Make make) {
  self->state.here = std::move(here);
  self->set_down_handler(
    [self](const caf::down_msg& down) { self->state.made.erase(down.source); });
  return {[self, make](const msg<Start>& start) -> caf::result<msg<wire::ActorMade>> {
    try {
      auto actor = caf::actor_cast<caf::strong_actor_ptr>(make(start));
      if (!actor || original_of(actor))
        return to_caf(
          {errc::failed_precondition, actor ? "the actor is of another process; make it there"
                                            : "no actor was made: the handle is empty"});
      self->monitor(actor);
      return make_actor_made(self->state.publish(actor, self->id()));
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
