// SPDX-License-Identifier: Apache-2.0
// Variables that two parameter servers hold, and those who speak to them.
#pragma once

#include "actors/stand_in.hpp"
#include "strategies/strategy.hpp"
#include "strategies/training_cast.hpp"

#include <string>

namespace troupe {

/// What the directory goes by.
inline constexpr const char* directory_name = "directory";

/// Refuses more owners of a variable than there may be.
/// Errors: throws `failure` with invalid_argument.
void check_owner_copies(const strategy_layout& layout);

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
void tell_directory(const strategy& strategy, const training_cast& cast, const chief_actor& chief);

} // namespace troupe
