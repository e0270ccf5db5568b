// SPDX-License-Identifier: Apache-2.0
// Restored state of variables that are made after their checkpoint was restored.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "actors/training/gradient_check.hpp"
#include "kernels/tensor/shape.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A program may restore a checkpoint before it has made its variables. State without a variable
/// waits here, by name, until its variable is made. Plain values, no actors.
///
/// Thread: the strategy's.
class deferred_restore {
public:
  /// Keeps these states, and forgets all that are left of a checkpoint that was restored before.
  void keep(uint64_t step, std::vector<variable_snapshot> variables);

  /// The state that a new variable begins with; nothing, if none was saved under its name.
  /// Errors: throws `failure` if its form has changed: type_mismatch, invalid_argument.
  [[nodiscard]] std::optional<variable_payload> of(const variable_form& form) const;

  /// Cuts the state of a table that is made in several shards: each takes its own rows.
  /// @param parts Names of the shards. @param offsets The first row of each, and the number of
  /// rows. Errors: as `of`.
  void cut(const variable_form& table, std::span<const std::string> parts,
           std::span<const int64_t> offsets);

  /// Forgets the state of a variable, which has begun with it.
  void forget(const std::string& name) { saved_.erase(name); }

  /// The variables that still have to be made, by name.
  [[nodiscard]] std::vector<std::string> names() const;

private:
  uint64_t step_ = 0;
  std::map<std::string, variable_payload> saved_;
};

/// The same rows of all arrays that a variable holds.
[[nodiscard]] variable_payload rows_of_state(const variable_payload& whole, int64_t begin,
                                             int64_t end);

} // namespace troupe
