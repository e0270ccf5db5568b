// SPDX-License-Identifier: Apache-2.0
// Everything on one device.
#pragma once

#include "strategies/strategy.hpp"

#include <string>

namespace troupe {

/// One replica, on one device, with all variables: to try out what is to run on many.
class one_device_strategy final : public strategy {
public:
  /// Errors: throws `failure` with invalid_argument for a device that is none.
  explicit one_device_strategy(troupe::world& world, std::string device = "cpu:0");
};

} // namespace troupe
