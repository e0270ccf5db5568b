// SPDX-License-Identifier: Apache-2.0
// The communicator: a process's part in the collectives of a group.
#pragma once

#include "actors/collective/collective_transfer.hpp"
#include "actors/interfaces/interfaces.hpp"
#include "actors/net/array_places.hpp"
#include "actors/observing/observed.hpp"
#include "actors/world/look_plan.hpp"
#include "actors/world/world.hpp"

#include <caf/typed_response_promise.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A communicator's place in its group.
struct communicator_config {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::vector<std::string> names; ///< Name of each rank, for people: "worker:2".
  /// By rank, null for itself; empty if they are told later, by `meet_peers`.
  std::vector<communicator_actor> peers;
  job_time deadline = std::chrono::seconds{60}; ///< For calls without their own.
  troupe::world* world = nullptr;               ///< Outlives the actor.
  std::shared_ptr<array_places> arrays{};       ///< Where links read arrays to; may be null.
};

/// Matches the calls of this process with those of others by counting them, and carries out those
/// that are under way. A call that fails takes all later ones with it, here and at all peers: a
/// process that has missed one of them would take every later one for another.
struct communicator_state {
  static inline const char* name = "communicator";

  using promise = caf::typed_response_promise<collective_result>;

  /// A call that is not answered yet.
  struct open_call {
    collective_transfer transfer;
    promise answer;
    job_time since{0};
    job_time timeout{0};
    bool has_said_so = false; ///< That it was made, to all.
  };

  /// From which call on all fail, and why.
  struct breakdown {
    uint64_t call = 0;
    error reason;
  };

  communicator_state() = default;
  communicator_state(const communicator_state&) = delete;
  communicator_state& operator=(const communicator_state&) = delete;
  ~communicator_state(); ///< Arrays for it are expected no more.

  communicator_config config;
  uint64_t id = 0;                          ///< The actor's.
  std::vector<caf::strong_actor_ptr> peers; ///< By rank; empty until they are known.
  std::vector<std::pair<uint32_t, msg<wire::CollectivePart>>> unsent; ///< Until then; by rank.
  uint64_t calls = 0;                                                 ///< Made here.
  std::map<uint64_t, open_call> open;
  std::map<uint64_t, std::vector<msg<wire::CollectivePart>>> early; ///< For calls to come.
  std::vector<uint64_t> heard;    ///< By rank: calls that it has made, as far as it is known.
  std::map<uint32_t, error> gone; ///< Peers by rank, and what is to be said of them.
  std::optional<breakdown> broken;
  std::vector<caf::typed_response_promise<group_broken>> onlookers; ///< To be told when it is.
  look_plan looks; ///< For calls that take too long.

  [[nodiscard]] group_place place() const { return {config.rank, config.size}; }

  [[nodiscard]] std::string name_of(uint32_t rank) const;
};

/// Calls that peers may be ahead of this process.
inline constexpr uint64_t early_calls_max = 65536;

/// The behaviour of a communicator.
communicator_actor::behavior_type
communicator(observed_pointer<communicator_actor, communicator_state> self,
             communicator_config config);

} // namespace troupe
