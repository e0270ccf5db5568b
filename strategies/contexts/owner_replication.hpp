// SPDX-License-Identifier: Apache-2.0
// Variables that two parameter servers hold, and the failover clients that speak to them.
#pragma once

#include "actors/replication/failover_client.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/contexts/strategy.hpp"

#include <array>
#include <functional>
#include <string>

namespace troupe {

/// The name of the directory's actor.
inline constexpr const char* directory_name = "directory";

/// How the names of the actors of a replicated variable begin: the owner's, the mirror's.
inline constexpr std::array<const char*, 2> place_prefixes{"", "mirror "};

/// Refuses more owners of a variable than are possible.
/// Errors: throws `failure` with invalid_argument.
void check_owner_copies(const strategy_layout& layout);

/// The actor that knows the holder of each variable. @pre Owners are replicated. Errors: throws
/// `failure`, as `placement::see`.
[[nodiscard]] directory_actor find_directory(const strategy& strategy, const std::string& viewer);

/// Spawns a failover client, which speaks to the holder of a variable, beside `viewer`.
/// @param config Variable, name and settings; owners and directory are looked up.
/// Errors: throws `failure`, as `placement::see`.
[[nodiscard]] failover_client_actor spawn_failover_client(const strategy& strategy,
                                                          const std::string& viewer,
                                                          failover_client_config config);

/// A job's actors as `viewer` knows them: if owners are replicated, through failover clients of its
/// own, which end with the last copy of the returned value.
/// @param closes_steps Whether the viewer is the chief.
/// @pre The strategy has a placement. Errors: throws `failure`, as `placement::see`.
[[nodiscard]] job_actors actors_seen_from(const std::string& viewer, const strategy& strategy,
                                          const job_actors& actors, bool closes_steps = false);

/// Tells the directory, if there is one, that a job begins, and that it is to tell `watcher` of
/// owners. A null watcher means that the job is over. @pre The directory stands in this process.
void tell_directory(const strategy& strategy, const owners_watcher_actor& watcher);

/// Has an owner or mirror that begins in a new life offer itself, as the mirror of the actor that
/// holds its variable now. @param place 0 = it stands in the owner's place, 1 = in the mirror's.
/// @param is_known Whether this is known to be a new life; else only the directory knows.
/// Errors: throws `failure`, as `placement::see`.
void offer_again(const strategy& strategy, const variable& variable, size_t place,
                 const replicated_owner_actor& owner, bool is_known = true);

/// As `offer_again`, for all owners and mirrors of this process. Does nothing if owners are not
/// replicated.
void offer_all_again(const strategy& strategy, bool is_known = true);

/// Spawns the accumulator of an owner, which holds a variable in a place; null if there is none.
using accumulator_maker
  = std::function<caf::actor(const variable&, size_t place, const replicated_owner_actor&)>;

/// For jobs where one process plays all: spawns the actors again that held variables in a process
/// that was lost and is there again, and has them offer themselves.
/// @param collect Spawns their accumulators; empty: there are none.
/// Errors: throws `failure`, as `placement::see`.
void bring_back(strategy& strategy, uint32_t process, const accumulator_maker& collect = {});

} // namespace troupe
