// SPDX-License-Identifier: Apache-2.0
// When the news of an actor's end counts.
#pragma once

#include "actors/net/frame_header.hpp"

#include <cstdint>
#include <unordered_map>

namespace troupe {

/// An actor's messages go in two lanes, which overtake each other. So the news of its end goes in
/// both, and counts when it has come in both: then all that the actor has said has come, too.
class actor_ends {
public:
  /// The news has come in one lane. @returns Whether it has come in the other as often.
  [[nodiscard]] bool is_whole(uint64_t actor, lane came_in) {
    auto& ahead = ahead_[actor];
    ahead += came_in == lane::control ? 1 : -1;
    if (ahead != 0) return false;
    ahead_.erase(actor);
    return true;
  }

private:
  std::unordered_map<uint64_t, int64_t> ahead_; ///< How much more often in the control lane.
};

} // namespace troupe
