// SPDX-License-Identifier: Apache-2.0
// The phase of an actor, and the table of the phases that may follow each.
#pragma once

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <cstdint>

namespace troupe {

/// A phase, and the set of phases that may follow it.
template <class Phase>
struct phase_row {
  Phase from;
  uint32_t to; ///< Bit i: the phase with the value i.
};

/// `from` may be followed by each phase of `to`. @pre Values of phases are below 32.
template <class Phase, class... Phases>
constexpr phase_row<Phase> leads(Phase from, Phases... to) {
  return {from, ((uint32_t{1} << static_cast<uint32_t>(to)) | ...)};
}

/// The phase that an actor is in: one value that cannot contradict itself, as flags can. Each
/// change is checked against a table, so that a wrong one stops the program where it happens.
/// @tparam table A constexpr array of `phase_row<Phase>`; a phase without a row is the last.
template <class Phase, const auto& table>
class phase_in {
public:
  constexpr explicit phase_in(Phase first) : now_(first) {}

  /// The present phase.
  constexpr operator Phase() const { return now_; }

  /// Whether `next` may follow the present phase.
  [[nodiscard]] constexpr bool may_enter(Phase next) const {
    return std::ranges::any_of(table, [&](const phase_row<Phase>& row) {
      return row.from == now_ && (row.to >> static_cast<uint32_t>(next) & 1) != 0;
    });
  }

  /// @pre `may_enter(next)`.
  constexpr void enter(Phase next) {
    TROUPE_ASSERT(may_enter(next), static_cast<int>(now_), static_cast<int>(next));
    now_ = next;
  }

private:
  Phase now_;
};

} // namespace troupe
