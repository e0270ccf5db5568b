// SPDX-License-Identifier: Apache-2.0
// The replicas that gave gradients.
#pragma once

#include "actors/recording/records.hpp"
#include "messages/mapped.hpp"

#include <cstdint>
#include <vector>

namespace troupe::test {

using replica_list = std::vector<uint32_t>;

/// The replica of each contribution, in their order.
[[nodiscard]] inline replica_list replicas_of(const std::vector<contribution>& contributions) {
  return mapped(contributions, &contribution::replica);
}

} // namespace troupe::test
