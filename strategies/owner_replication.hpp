// SPDX-License-Identifier: Apache-2.0
// Variables that two parameter servers hold, and those who speak to them.
#pragma once

#include "actors/stand_in.hpp"
#include "strategies/strategy.hpp"
#include "strategies/sync_replicas_optimizer.hpp"
#include "strategies/training_cast.hpp"

#include <array>
#include <string>

namespace troupe {

/// What the directory goes by.
inline constexpr const char* directory_name = "directory";

/// What the actors of a variable that is replicated go by begins with: the owner's, the mirror's.
inline constexpr std::array<const char*, 2> place_prefixes{"", "mirror "};

/// Refuses more owners of a variable than there may be.
/// Errors: throws `failure` with invalid_argument.
void check_owner_copies(const strategy_layout& layout);

/// Who knows who holds each variable. @pre Owners are replicated. Errors: throws `failure`, as
/// `placement::see`.
[[nodiscard]] directory_actor find_directory(const strategy& strategy, const std::string& viewer);

/// Puts one who speaks to whoever holds a variable on stage, beside `viewer`.
/// @param config With variable, name, and what else it is to be; owners and directory are looked
/// for. Errors: throws `failure`, as `placement::see`.
[[nodiscard]] stand_in_actor spawn_stand_in(const strategy& strategy, const std::string& viewer,
                                            stand_in_config config);

/// A job's cast as `viewer` knows it: if owners are replicated, through stand-ins of its own, which
/// end with the last copy of the cast.
/// @param closes_steps Whether it is the chief.
/// @pre The strategy has a placement. Errors: throws `failure`, as `placement::see`.
[[nodiscard]] training_cast cast_seen_from(const std::string& viewer, const strategy& strategy,
                                           const training_cast& cast, bool closes_steps = false);

/// Tells the directory, if there is one, of the job that begins; or, without a chief, of its end.
/// @pre The chief stands in this process.
void tell_directory(const strategy& strategy, const chief_actor& chief);

/// Has an owner or mirror that begins in a new life offer itself, as the mirror of whoever holds
/// its variable now. @param place 0 = it stands in the owner's place, 1 = in the mirror's. Errors:
/// throws `failure`, as `placement::see`.
void offer_again(const strategy& strategy, const variable& of, size_t place,
                 const replicated_owner_actor& who);

/// Puts all on stage again that held a variable in a process that was lost and is there again, with
/// their accumulators, and has them offer themselves: where one process plays all.
/// Errors: throws `failure`, as `placement::see`.
void bring_back(strategy& strategy, const sync_replicas_optimizer& optimizer,
                const job_links& links, uint32_t process);

} // namespace troupe
