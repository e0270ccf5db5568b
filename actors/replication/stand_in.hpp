// SPDX-License-Identifier: Apache-2.0
// The stand-in: speaks to the holder of a variable, and outlasts the loss of its owner.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/net/placement.hpp"
#include "actors/observing/observed.hpp"
#include "actors/policies/asynchronous_rule.hpp"
#include "actors/replication/kept_gradients.hpp"
#include "actors/world/world.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// The actors that a stand-in stands for: first those that begin with the variable, then those that
/// may take over, in turn. They are looked for when they are needed, since one of them may be gone,
/// or be there again.
struct stand_in_config {
  uint32_t variable = 0; ///< Its position among those of the strategy.
  std::string name;      ///< Of the variable.
  std::array<actor_search, 2> owners;
  std::array<actor_search, 2> accumulators; ///< Empty, where no gradients are given.
  directory_actor directory;
  bool closes_steps = false;                     ///< The chief's: it takes gradients.
  uint64_t first_step = 0;                       ///< The job's.
  std::optional<asynchronous_rule> asynchronous; ///< As its accumulators have it.
  /// How long to wait for the holder of the variable to be there.
  job_time start_deadline = std::chrono::seconds{60};
  /// How long to wait, after the owner is lost, for the word of the new holder.
  job_time patience = std::chrono::seconds{15};
};

/// A replica that pushes a gradient, or a chief that closes a step, is to notice nothing of the
/// loss of an owner. So each talks to a stand-in: what it asks is passed on, and asked again of the
/// mirror when that has taken over. Gradients that were accepted and might not be part of an update
/// yet are given again; whatever the mirror knows to have been answered is answered so.
///
/// | the mirror knows of   | a take that waits           | a gradient that waits          |
/// |-----------------------|-----------------------------|--------------------------------|
/// | the step to be closed | answered as its owner would | answered, if it was part of it |
/// | the step before       | asked again                 | given again                    |
/// | an earlier one        | fails: the mirror is behind | given again                    |
///
/// The directory says which of them holds the variable: none is spoken to before, and one that does
/// not hold it need not be there.
///
/// Where training is asynchronous, an accumulator may hold gradients for several steps, and a
/// mirror that takes over is given them in another order. It knows the last gradient of each
/// replica that the variable has: what came later is given again. And what a step consists of is
/// certain only when the mirror has it, too; so the chief is told of that not before it is told
/// that the step is closed.
///
/// A request that changes the variable by itself, by hand or as an update, is made again, too, by
/// its number: a holder that has made the change answers, and does not make it twice. There is no
/// number before the directory has said by which this one asks.
struct stand_in_state {
  static inline const char* name = "stand_in";

  /// A request that has not been answered yet.
  struct flight {
    /// Asks the present holder of the variable.
    std::function<void()> ask;
    /// Answers by what the mirror knows of, if that says enough.
    std::function<bool(const std::optional<closed_step>&)> settle;
    std::function<void(const error&)> fail;
    uint32_t attempts = 0;
    bool is_early = false;       ///< The actor to ask has not been found yet.
    bool is_repetition = false;  ///< Of a gradient that was accepted before.
    std::optional<error> failed; ///< Why it waits for another holder of the variable.
  };

  stand_in_config config;
  uint64_t term = 0; ///< How often the variable has moved.
  /// Its holders, as far as they have been needed and found.
  variable_owner_actor owner;
  accumulator_actor accumulator;
  bool is_sought = false;             ///< The node was asked for them.
  job_time looked{0};                 ///< How long for the present holder.
  bool is_looking = false;            ///< A tick will come.
  std::map<uint64_t, flight> flights; ///< In the order in which they were asked.
  uint64_t flight_count = 0;
  uint64_t asker = 0;              ///< What it asks for changes by; 0: it was not told yet.
  uint64_t change_count = 0;       ///< How many it has asked for.
  std::set<uint64_t> open_changes; ///< Those without an answer.
  std::deque<std::function<void()>> later_changes; ///< Asked for when they may be.
  uint32_t patient = 0; ///< How often it waits for a word, each time for `patience`.
  std::vector<std::function<void()>> unsaid; ///< What is to be said after they were asked again.
  kept_gradients kept;
  std::optional<error> nobody;                    ///< Why the variable has no holder any more.
  caf::strong_actor_ptr closer;                   ///< The actor that takes gradients.
  uint64_t next_taken = 0;                        ///< The step that the next take is for.
  msg<wire::TakenGradient> reported;              ///< The last report that the closer was given.
  msg<wire::TakenGradient> untold;                ///< One that is not certain yet; mostly empty.
  std::vector<std::function<void()>> early_looks; ///< What is asked again when it is told.

  /// Which of those in the config holds the variable.
  [[nodiscard]] size_t holder() const { return term % 2; }

  /// True if the present holders of the variable have been found.
  [[nodiscard]] bool is_found() const {
    return owner && (accumulator || !config.accumulators[holder()]);
  }

  /// The step that a mirror collects for that knows of `closed`.
  [[nodiscard]] uint64_t collected(const std::optional<closed_step>& closed) const {
    return closed ? closed->step + 1 : config.first_step;
  }
};

/// The behaviour of a stand-in.
stand_in_actor::behavior_type stand_in(observed_pointer<stand_in_actor, stand_in_state> self,
                                       stand_in_config config);

} // namespace troupe
