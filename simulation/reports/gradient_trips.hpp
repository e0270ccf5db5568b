// SPDX-License-Identifier: Apache-2.0
// When replicas asked for variables and sent gradients, where messages take time: a ledger tells
// when a gradient came, and not when it left.
#pragma once

#include "simulation/network/delivery.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace troupe {

/// The ways of a gradient and of the variables that it was made of.
struct gradient_trip {
  job_time asked{0}; ///< When its replica asked for the variables, token in hand.
  job_time sent{0};  ///< When it had computed.
};

/// Keeps what has arrived until it is asked for or forgotten.
class gradient_trips {
public:
  explicit gradient_trips(uint32_t replicas) : asked_(replicas), arrived_(replicas) {}

  /// Takes in one message; messages that tell of no trip are passed over.
  void add(const delivery& delivery);

  /// The trip of the gradient that came then, taken out; nothing if none did.
  [[nodiscard]] std::optional<gradient_trip> take(uint32_t replica, job_time arrived);

  /// The caller asks for nothing before this time any more.
  void forget_before(job_time time);

private:
  std::vector<job_time> asked_; ///< By replica: for the gradient that it is at.
  std::vector<std::map<job_time, gradient_trip>> arrived_; ///< By replica and arrival.
};

} // namespace troupe
