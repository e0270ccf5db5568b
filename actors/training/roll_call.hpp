// SPDX-License-Identifier: Apache-2.0
// The roll call: makes the processes of a job begin and end it together.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/policies/waiting_lines.hpp"
#include "actors/world/world.hpp"
#include "messages/cluster_message.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// Members that a job may begin without: workers, which may enter later.
struct optional_members {
  std::map<uint32_t, uint32_t> replicas; ///< The replicas of each member, by member.
  uint32_t replicas_min = 0;             ///< The fewest replicas to begin with.
  /// How long a job that may begin waits for the rest.
  job_time last_call = std::chrono::seconds{5};
};

/// The outcome of the roll call when a job begins.
struct roll_called {
  job_time clock{0};                      ///< The greatest time on any process's clock, now.
  std::map<uint32_t, std::string> absent; ///< Names of members that may enter later.
};

/// The members that a roll call waits for.
struct roll_call_config {
  std::map<uint32_t, std::string> members; ///< Names of all processes but the chief's, by node.
  uint64_t seed = 0;                       ///< The world's seed; all processes must have the same.
  uint32_t lives_before = 0; ///< As `last_life` says of the snapshot that the job goes on from.
  uint32_t replicas = 0;     ///< The job's replicas; all processes must have as many.
  std::string agreement; ///< Lines that all processes must have alike, cut by `short_agreement`.
  /// Members that hold variables alone: one that is lost has lost them, and is not let in again.
  std::set<uint32_t> holders;
  optional_members optional; ///< None of them holds variables alone.
  /// How long the job waits for its processes before it begins.
  job_time enter_deadline = std::chrono::seconds{60};
  /// How long the job waits for its processes to leave when it is over.
  job_time leave_deadline = std::chrono::seconds{30};
  job_time watch_period = std::chrono::milliseconds{100}; ///< How often it looks for missing ones.
  /// Called once: with how the job begins, or why it cannot.
  std::function<void(expected<roll_called>)> on_entered;
  /// Called before the job begins, unless it is empty: with a line every ten seconds while members
  /// are missing, and with one when the job may begin without them.
  std::function<void(const std::string& line)> on_waiting;
  /// Called when a member has entered, again or for the first time, if that is not empty.
  std::function<void(uint32_t member, const member_actor& handle)> on_here;
  /// Called when a member is lost while the job goes on, if that is not empty.
  std::function<void(uint32_t member, const error& reason)> on_lost;
  /// Called once, last: how the job ended for all.
  std::function<void(const job_ending&)> on_left;
  troupe::world* world = nullptr; ///< Outlives the actor.
};

/// The members that are there.
///
/// | phase    | until                                   | then                                   |
/// |----------|-----------------------------------------|----------------------------------------|
/// | entering | every member has entered, or enough and | entered                                |
/// |          | the last call is over                   |                                        |
/// |          | the deadline, or one is lost or differs | refused                                |
/// | entered  | JobBegins                               | playing: members are told              |
/// | playing  | JobEnded                                | leaving: members are told              |
/// | leaving  | every member wants to leave, or is lost | closing: members are told how it ended |
/// |          | the deadline                            | closing, and the job has failed        |
/// | closing  | every member has ended, or the deadline | over: quit                             |
///
/// An optional member that is lost before it is `entered` is missing as if it had not come.
/// JobEnded leads from the first two and from `refused` to `leaving`, too. A member that was lost
/// or absent while the job is played may enter, and is told at once.
struct roll_call_state {
  static inline const char* name = "roll_call";

  enum class phase : uint8_t { entering, refused, entered, playing, leaving, closing, over };

  /// A member that has entered.
  struct presence {
    caf::strong_actor_ptr handle;
    bool is_lost = false;
    uint32_t life = 0; ///< How often it was lost or late before.
    std::optional<caf::typed_response_promise<msg<wire::JobBegins>>> begins;
    std::optional<caf::typed_response_promise<msg<wire::JobEnded>>> ends;
    std::optional<caf::typed_response_promise<msg<wire::JobEnded>>> leaves;
  };

  roll_call_config config;
  phase now_in = phase::entering;
  job_time phase_began{0};
  std::map<uint32_t, presence> members; ///< The members that have entered.
  job_time ahead{0};                    ///< The most that any member's clock is before this one.
  uint64_t first_step = 0;              ///< From `playing` on.
  job_ending ending;                    ///< From `leaving` on.
  std::optional<waiting_lines> waiting; ///< While `entering`.
  std::optional<job_time> enough_since; ///< While `entering`: when the last call began.

  /// Why a member is refused; nothing if it may enter.
  [[nodiscard]] std::optional<error> check(const entrance& newcomer) const;

  /// Whether the job can begin with the members that are there.
  [[nodiscard]] bool may_begin() const;

  /// Whether a member has entered and is not lost.
  [[nodiscard]] bool is_there(uint32_t member) const;

  /// The names of the members that have not entered; from `leaving` on, of those that do not leave.
  [[nodiscard]] std::vector<std::string> missing() const;

  [[nodiscard]] const std::string& name_of(uint32_t member) const {
    return config.members.at(member);
  }
};

/// The behaviour of a roll call.
roll_call_actor::behavior_type roll_call(observed_pointer<roll_call_actor, roll_call_state> self,
                                         roll_call_config config);

} // namespace troupe
