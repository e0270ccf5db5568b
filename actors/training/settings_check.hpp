// SPDX-License-Identifier: Apache-2.0
// The settings check: refuses processes that were given other settings than the chief's.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "messages/errors/errc.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace troupe {

/// The settings that a check compares with.
struct settings_check_config {
  std::map<uint32_t, std::string> members; ///< Names of all processes but the chief's, by node.
  std::string agreement; ///< Lines that all processes must have alike, cut by `short_agreement`.
  /// Called with each refusal, before its process is answered.
  std::function<void(const error&)> on_refusal;
  /// Why the job cannot begin, if it cannot: each process that asks is told.
  std::function<std::optional<error>()> why_not;
};

/// A process with another model makes other variables, and looks for actors that never come. So it
/// never gets to the roll call, which would refuse it. It asks this actor before: one stands in the
/// chief's process from the moment when others can reach it, and knows nothing but the settings.
struct settings_check_state {
  static inline const char* name = "settings_check";
  settings_check_config config;
};

/// The behaviour of a settings check.
settings_check_actor::behavior_type
settings_check(observed_pointer<settings_check_actor, settings_check_state> self,
               settings_check_config config);

} // namespace troupe
