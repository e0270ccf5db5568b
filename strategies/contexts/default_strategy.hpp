// SPDX-License-Identifier: Apache-2.0
// The strategy that code runs under if it has chosen none.
#pragma once

#include "strategies/contexts/strategy.hpp"

namespace troupe {

/// One replica that has no device of its own: code that is written for a strategy runs as if there
/// were none. `get_strategy` returns it where no scope is entered.
class default_strategy final : public strategy {
public:
  /// Errors: throws `failure` with failed_precondition while there is another one in the process.
  explicit default_strategy(troupe::world& world);
  ~default_strategy() override;

  /// The default strategy of this process; null if there is none.
  [[nodiscard]] static default_strategy* instance();
};

} // namespace troupe
