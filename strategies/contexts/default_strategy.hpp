// SPDX-License-Identifier: Apache-2.0
// What there is where no strategy was chosen.
#pragma once

#include "strategies/contexts/strategy.hpp"

namespace troupe {

/// One replica that has no device of its own: what is written for a strategy runs as if there were
/// none. `get_strategy` gives it out where no scope is entered.
class default_strategy final : public strategy {
public:
  /// Errors: throws `failure` with failed_precondition while there is another one in the process.
  explicit default_strategy(troupe::world& world);
  ~default_strategy() override;

  /// The one that there is; null if there is none.
  [[nodiscard]] static default_strategy* instance();
};

} // namespace troupe
