// SPDX-License-Identifier: Apache-2.0
// The directory: knows who holds each variable, and has mirrors take over.
#pragma once

#include "actors/interfaces.hpp"
#include "actors/observing/observed.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe {

/// Where the loss of an owner is noticed by everybody on their own, one must decide who holds the
/// variable then, or two would. The directory stands in the chief's process, which a job cannot do
/// without anyway, and watches all owners and mirrors.
///
/// | a variable is | until                                           | then                       |
/// |---------------|-------------------------------------------------|----------------------------|
/// | held          | its owner is gone                               | asking, or lost: no mirror |
/// | asking        | the mirror has said what it has come to         | gathering                  |
/// | gathering     | those who give gradients have given them again  | closing                    |
/// | closing       | whoever closes steps asks beside the mirror     | moved                      |
/// | moved         | the mirror is gone, too                         | lost                       |
///
/// So nobody closes a step before all that was accepted for it is there again.
struct directory_state {
  static inline const char* name = "directory";

  enum class phase : uint8_t { held, asking, gathering, closing, moved, lost };

  /// Who wants to know where a variable is.
  struct follower {
    uint32_t variable = 0;
    stand_in_actor who;
    bool closes_steps = false;
    /// Until it is certain who holds the variable.
    std::optional<caf::typed_response_promise<msg<wire::OwnerFollowed>>> asks;
  };

  /// One variable.
  struct entry {
    watch_owner who;
    phase now_in = phase::held;
    bool is_mirrored = true;
    size_t missing = 0;       ///< Followers who have been told and have not answered.
    msg<wire::TookOver> word; ///< What followers are told; empty as long as it is held.
  };

  std::vector<entry> variables;
  std::vector<follower> followers; ///< Some of them of variables that are still to be watched.
  std::optional<watch_job> job;

  // Since the last word of losses:
  std::set<std::string> reasons;
  std::vector<std::string> moved; ///< Variables that mirrors hold.
  std::vector<std::string> alone; ///< Those that have no mirror any more.

  /// True while a mirror is about to take over.
  [[nodiscard]] bool is_moving() const;

  /// "node 'ps 1' is gone: 'w1' is held by its mirror; there is no mirror of 'w0', 'w1' any more".
  /// Forgets what it says; empty, if there is nothing to say.
  [[nodiscard]] std::string tell_losses();
};

/// The behaviour of the directory.
directory_actor::behavior_type directory(observed_pointer<directory_actor, directory_state> self);

} // namespace troupe
