// SPDX-License-Identifier: Apache-2.0
// When the news of an actor's end counts.
#pragma once

#include "actors/net/frame_header.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

namespace troupe {

/// The id in the header of an actor's end that comes in both lanes.
inline constexpr uint64_t in_both_lanes = 1;

/// An actor's messages go in two lanes, which overtake each other. So the news of its end goes in
/// the control lane, and in the other, too, if messages wait there; it counts when it has come in
/// both: then all that the actor has said has come, too.
class actor_ends {
public:
  /// The news has come in one lane. @returns Why the actor ended, once the news has come in the
  /// other lane as often; of several reasons the first that says something.
  [[nodiscard]] std::optional<caf::error> come(uint64_t actor, lane in, const caf::error& reason) {
    auto& told = told_[actor];
    if (!told.reason) told.reason = reason;
    told.ahead += in == lane::control ? 1 : -1;
    if (told.ahead != 0) return std::nullopt;
    auto why = std::move(told.reason);
    told_.erase(actor);
    return why;
  }

private:
  struct news {
    int64_t ahead = 0; ///< How much more often it has come in the control lane.
    caf::error reason;
  };

  std::unordered_map<uint64_t, news> told_;
};

} // namespace troupe
