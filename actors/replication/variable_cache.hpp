// SPDX-License-Identifier: Apache-2.0
// The variable cache: a process's copy of a variable that another process holds.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// The owner that a cache asks.
struct variable_cache_config {
  variable_owner_actor owner; ///< Stands in another process.
};

/// All replicas of a process read the same variables after every step, and the value is to travel
/// once. So one actor asks for all of them, and gets only the changes since it last asked. A reader
/// gets a value of no earlier moment than its request: if a request comes while the owner is being
/// asked, the owner is asked again.
///
/// The cache does not keep a value that cannot be patched, only its readers do: received memory
/// counts against the memory that the owner's node may send.
struct variable_cache_state {
  static inline const char* name = "variable_cache";

  using promise = caf::typed_response_promise<msg<wire::VariableSnapshot>>;

  variable_cache_config config;
  msg<wire::VariableSnapshot> kept;          ///< In our own memory, to be patched; mostly empty.
  std::weak_ptr<const message_storage> seen; ///< The latest value.
  uint64_t revision = 0;                     ///< The revision of the latest value.
  std::vector<promise> asked;                ///< Readers for which the owner is being asked.
  std::vector<promise> waiting;              ///< Readers that have come since then.
  std::optional<error> lost;                 ///< Why the owner is gone, if it is.

  /// The latest value that the owner has sent; empty if it is not in use any more.
  [[nodiscard]] msg<wire::VariableSnapshot> known() const;

  /// The value after the changes that the owner tells.
  /// @param before The value that was known when the owner was asked.
  /// Errors: malformed, if the changes do not fit it.
  [[nodiscard]] expected<msg<wire::VariableSnapshot>>
  take(const msg<wire::VariableSnapshot>& before, const msg<wire::VariableChanges>& changes);
};

/// The behaviour of a cache, which answers as an owner does. Once the owner is gone, every request
/// gets an error that says so.
variable_owner_actor::behavior_type
variable_cache(observed_pointer<variable_owner_actor, variable_cache_state> self,
               variable_cache_config config);

} // namespace troupe
