// SPDX-License-Identifier: Apache-2.0
// The actor that asks the members of a group, and knows which of them are gone.
#pragma once

#include "actors/groups/gather_ledger.hpp"
#include "actors/interfaces/caf_compat.hpp"
#include "actors/observing/observed.hpp"
#include "actors/recording/records.hpp"
#include "messages/errors/errc.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace troupe {

class world;
struct gatherer_state;

/// How a group is asked.
struct group_options {
  size_t first = 0;                          ///< Answers that are enough; 0 = those of all.
  job_time limit = std::chrono::seconds{60}; ///< Members that have not answered by then are late.

  /// Whether the question goes on when there are enough answers, until the others have come, too.
  /// They are `late`, and have answers.
  bool awaits_late = false;

  // Objects that the next two functions refer to outlive the world: answers may come late.

  /// Tells a member that its answer is not needed any more: `group::cancel_by`. Empty: it goes on,
  /// and its answer is dropped.
  std::function<void(const caf::strong_actor_ptr& member)> cancel{};

  /// Told of each answer that comes when the question is over, which is dropped. Thread: that of
  /// the group's actor.
  std::function<void(size_t member, job_time took)> on_late{};
};

/// One question to members of a group. The types of messages are known to `ask` alone.
struct group_call {
  std::vector<uint32_t> members; ///< The ones that are asked, by their numbers in the gatherer.
  group_options options;

  /// Sends the question to one member. Its answer, or failure, goes to the state.
  /// @param position The member's position in `members`.
  std::function<void(gatherer_state& from, uint64_t call, uint32_t position)> ask;

  uint64_t stream = 0; ///< The stream that reads answers one by one; 0 = none.
};

/// The outcome of a question, by position.
struct group_outcome {
  std::vector<member_report> members;
};

/// A request for the next settled member of a stream.
struct next_arrival {
  uint64_t stream = 0;
};

struct group_arrival {
  std::optional<uint32_t> position; ///< Nothing, if the question is over.
  member_report report{};
};

/// A stream is read no more.
struct end_stream {
  uint64_t stream = 0;
};

/// The gatherer's message to itself: a limit may have passed.
struct look_at_limits {
  job_time planned{0};
};

} // namespace troupe

TROUPE_LOCAL_MESSAGE(troupe::group_call)
TROUPE_LOCAL_MESSAGE(troupe::group_outcome)
TROUPE_LOCAL_MESSAGE(troupe::next_arrival)
TROUPE_LOCAL_MESSAGE(troupe::group_arrival)
TROUPE_LOCAL_MESSAGE(troupe::end_stream)
TROUPE_LOCAL_MESSAGE(troupe::look_at_limits)

namespace troupe {

/// A call that a stream reads is answered when it has begun, with an empty outcome.
using gatherer_actor = caf::typed_actor<caf::replies_to<group_call>::with<group_outcome>,
                                        caf::replies_to<next_arrival>::with<group_arrival>,
                                        caf::reacts_to<end_stream>, caf::reacts_to<look_at_limits>>;

using gatherer_pointer = observed_pointer<gatherer_actor, gatherer_state>;

/// The members, and the questions that are open.
struct gatherer_state {
  static inline const char* name = "gatherer";

  struct member {
    caf::strong_actor_ptr actor;
    std::optional<error> lost; ///< Why it is gone, if it is.
  };

  struct open_call {
    gather_ledger ledger;
    group_call request;
    job_time until{0};
    caf::typed_response_promise<group_outcome> answer; ///< To a call without a stream.
  };

  /// The reader of a call's answers.
  struct stream {
    std::deque<group_arrival> unread;
    std::optional<caf::typed_response_promise<group_arrival>> reader; ///< It waits.
    bool is_over = false;
  };

  [[nodiscard]] caf::result<group_outcome> begin(group_call request);
  [[nodiscard]] caf::result<group_arrival> next(uint64_t stream);
  void lose(const caf::actor_addr& gone, const caf::error& reason);
  void look(job_time planned);
  void end_all(const error& why);

  // -- called by `group_call::ask` --

  /// Whether an answer of the member is still wanted.
  [[nodiscard]] bool is_wanted(uint64_t call, uint32_t position) const;

  /// A member has answered, or failed.
  void answer(uint64_t call, uint32_t position);
  void fail(uint64_t call, uint32_t position, const caf::error& reason);

  gatherer_pointer self = nullptr;
  troupe::world* world = nullptr;
  std::vector<member> members;
  std::map<uint64_t, open_call> open; ///< By number.
  std::map<uint64_t, stream> streams;
  uint64_t count = 0;
  std::set<job_time> looks; ///< When it will look at limits.

private:
  void settled(uint64_t call, uint32_t position);
  void end(uint64_t call);
  void report(stream& to, group_arrival arrival);
  void plan_look(job_time until);
};

/// The behaviour of a gatherer. @param members Not null. @param world Outlives the actor.
/// Errors: cancelled, to all that is open, if it is told to exit.
[[nodiscard]] gatherer_actor::behavior_type
gatherer(gatherer_pointer self, troupe::world* world,
         const std::vector<caf::strong_actor_ptr>& members);

} // namespace troupe
