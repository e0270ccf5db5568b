// SPDX-License-Identifier: Apache-2.0
// The replica: a user's coroutine, hosted by an actor.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/world/activity.hpp"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace troupe {

/// The function that a replica runs, and the chief that it tells.
struct replica_config {
  uint32_t index = 0;
  chief_actor chief;              ///< Told when the replica joins and leaves; null: there is none.
  troupe::world* world = nullptr; ///< Outlives the actor.
  pace_function pace;             ///< How long computing is to take; empty: its real time.
  job_time ask_again_after{0};    ///< As `activity::set_ask_again_after`.
  std::string process{}; ///< Its process, for errors about actors that it cannot reach, or empty.
  std::optional<troupe::processor> processor{}; ///< As `activity::set_processor`.
  std::stop_token leave{}; ///< After a stop, a life that ends well leaves the job to the others.
  /// The replica's life; it ends with the task. An exception that leaves it is reported to the
  /// chief as the reason.
  std::function<task<void>(activity&)> body;
};

/// A replica's coroutine and what it waits for.
struct replica_state {
  static inline const char* name = "replica";

  replica_config config;
  std::optional<troupe::activity> activity;
  task<void> life; ///< Refers to `config` and `activity`; destroyed first.
};

/// The behaviour of a replica. It says JoinJob first and Farewell last, and ends for the reason
/// that it gives there.
replica_actor::behavior_type replica(observed_pointer<replica_actor, replica_state> self,
                                     replica_config config);

} // namespace troupe
