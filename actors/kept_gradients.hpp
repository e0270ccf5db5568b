// SPDX-License-Identifier: Apache-2.0
// The gradients that a replica has given for one variable, as long as they might have to be given
// again.
#pragma once

#include "messages/msg.hpp"
#include "messages/payload.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

/// An accumulator that is lost takes along what it had accepted for the step that it collected for.
/// So whoever gave it that keeps it, by reference, until the step must be over. Plain decisions.
class kept_gradients {
public:
  /// An accumulator has accepted a gradient, and collected for `step` when it did.
  void add(const msg<wire::PushGradient>& accepted, uint64_t step);

  /// A replica has a token for `step`, or somebody says so who knows: what was accepted for earlier
  /// ones is part of the variable, in as many places as there are.
  void forget_before(uint64_t step);

  /// In the order in which they were accepted.
  [[nodiscard]] std::vector<msg<wire::PushGradient>> all() const;

private:
  struct entry {
    msg<wire::PushGradient> gradient;
    uint64_t step = 0;
  };

  std::vector<entry> entries_;
};

/// What an accumulator that is lost must have answered to a gradient, by the last step that is
/// known of it; nothing, if it was not part of that.
[[nodiscard]] std::optional<verdict> verdict_of(const closed_step& closed, const origin& from);

/// The gradients of `report` that `former`, a report of the same step, does not have.
/// @returns Empty, if there are none.
[[nodiscard]] msg<wire::TakenGradient> amendment(const msg<wire::TakenGradient>& report,
                                                 const msg<wire::TakenGradient>& former);

} // namespace troupe
