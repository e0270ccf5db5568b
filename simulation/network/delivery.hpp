// SPDX-License-Identifier: Apache-2.0
// The arrival of a message in a simulated network.
#pragma once

#include "actors/net/address.hpp"
#include "actors/recording/records.hpp"

#include <caf/fwd.hpp>

#include <cstdint>

namespace troupe {

/// A message that has come to a node, for observers.
struct delivery {
  job_time time{0};
  job_time sent{0}; ///< When it set out.
  node_index from = 0;
  node_index to = 0;
  uint32_t replica = 0; ///< The one at one of its ends; else the number of replicas.
  const char* kind = "";
  const caf::message* content = nullptr;
};

} // namespace troupe
