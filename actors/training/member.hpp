// SPDX-License-Identifier: Apache-2.0
// The member: stands for a process at the roll call of its job.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "messages/cluster_message.hpp"

#include <functional>

namespace troupe {

/// How a member enters a job. Each function is called once, in this order, on some thread of the
/// world. After one that got an error, only `on_left` is called.
struct member_config {
  roll_call_actor roll;
  troupe::entrance entrance;
  const observatory* observed = nullptr; ///< Watches this process; outlives the actor.
  /// The job begins. Errors: why it does not; unavailable, if the chief's process is gone.
  std::function<void(expected<msg<wire::JobBegins>>)> on_begin;
  /// The job is over. Errors: unavailable, if the chief's process is gone.
  std::function<void(expected<job_ending>)> on_end;
  /// All have left. Errors: unavailable, if the chief's process is gone.
  std::function<void(expected<job_ending>)> on_left;
};

/// The state of a member, which waits for answers of the roll call, and answers questions about the
/// actors of its process.
struct member_state {
  static inline const char* name = "member";
  member_config config;
};

/// The behaviour of a member: it enters, waits for the end, and ends when it is told to leave and
/// all others want to.
member_actor::behavior_type member(observed_pointer<member_actor, member_state> self,
                                   member_config config);

} // namespace troupe
