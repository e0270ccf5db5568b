// SPDX-License-Identifier: Apache-2.0
// How actors of a trainer's author find each other across processes.
#pragma once

#include "actors/interfaces/caf_compat.hpp"
#include "actors/net/membership.hpp"
#include "actors/recording/records.hpp"

#include <caf/actor_clock.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace troupe {

/// Asks for the actor that was published under a name at a node.
struct find_actor {
  node_index at = 0;
  std::string name;
  job_time deadline{0}; ///< Time that it is given to be there.
};

/// The actor, as actors of this node know it.
struct found_actor {
  caf::strong_actor_ptr actor;
};

/// No actor is waited for any more: all searches, and those to come, end with this error.
struct end_searches {
  error why;
};

/// A node has answered, or it is time to look at deadlines; the finder tells itself.
struct search_over {
  node_index at = 0;
  std::string name;
  expected<caf::strong_actor_ptr> result;
};

struct look_at_searches {};

} // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::find_actor)
TROUPE_LOCAL_MESSAGE(troupe::found_actor)
TROUPE_LOCAL_MESSAGE(troupe::end_searches)
TROUPE_LOCAL_MESSAGE(troupe::search_over)
TROUPE_LOCAL_MESSAGE(troupe::look_at_searches)

namespace troupe {

/// Waits for other processes, and for what they publish, so that no thread has to.
using finder_actor
  = caf::typed_actor<caf::replies_to<find_actor>::with<found_actor>, caf::reacts_to<end_searches>,
                     caf::reacts_to<search_over>, caf::reacts_to<look_at_searches>>;

/// The searches that are open. A question cannot be taken back: its node keeps it until it has the
/// answer. So a search that ends at its deadline leaves its question to later ones, and a program
/// that looks again and again has asked once for each name.
struct finder_state {
  static inline const char* name = "finder";

  struct search {
    find_actor request;
    caf::actor_clock::time_point until;
    caf::typed_response_promise<found_actor> answer;
    bool is_asked = false; ///< The node is there, and has the question of this search or another.
  };

  [[nodiscard]] caf::typed_response_promise<found_actor> begin(find_actor request);
  void look();
  void end_all(const error& why);
  void end(uint64_t number, expected<caf::strong_actor_ptr> result);
  void on_answer(const search_over& over);

  finder_actor::stateful_pointer<finder_state> self = nullptr;
  membership* nodes = nullptr;
  std::map<uint64_t, search> open;                    ///< By number.
  std::set<std::pair<node_index, std::string>> asked; ///< Nodes and names, without an answer yet.
  uint64_t count = 0;
  bool looks_again = false;
  std::optional<error> ended; ///< The reason that `end_searches` gave.

private:
  void ask(search& one);
  [[nodiscard]] error why_late(const search& one) const;
};

/// Answers `find_actor` when the actor is there. Told to exit, it ends all searches first.
/// @param nodes Not null; outlives the actor.
/// Errors: deadline_exceeded, naming the actor, its process and what is missing; unavailable if the
/// process is gone; cancelled if the finder ends; that of `end_searches`; as
/// `membership::arrival`.
[[nodiscard]] finder_actor::behavior_type finder(finder_actor::stateful_pointer<finder_state> self,
                                                 membership* nodes);

/// Lets actors of all nodes find an actor of this one until it ends. An actor that had the name
/// before has it no more. Names of the job's own actors are apart from these.
void publish_for_finders(node& here, const std::string& name, const caf::strong_actor_ptr& actor);

} // namespace troupe
