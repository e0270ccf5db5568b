// SPDX-License-Identifier: Apache-2.0
// The outcomes of messages in a simulated network.
#pragma once

#include "simulation/network/in_flight_message.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe {

/// The fate of a message, or something that happened to it on its way.
enum class message_outcome : uint8_t {
  delivered,
  lost,
  duplicated,
  reordered,
  held,
  too_late, ///< Lost, because the life of the node that it was for is over.
  recalled,
};

/// Counts outcomes, and knows which gradients are lost.
class message_outcomes {
public:
  /// A message has come to this.
  void count(message_outcome result, const in_flight_message& message);

  /// A node has given up another.
  void count_given_up() { ++given_up_; }

  /// Messages of each kind by their outcome: "delivered Token", "lost PushGradient", "held Token";
  /// and "given up node".
  [[nodiscard]] std::map<std::string, uint64_t> counts() const;

  /// Gradients that were sent and lost to the last trace: no repetition of them has arrived.
  [[nodiscard]] uint64_t lost_gradients() const { return lost_gradients_.size(); }

private:
  std::map<std::pair<message_outcome, const char*>, uint64_t> counts_;
  uint64_t given_up_ = 0;
  std::set<std::pair<uint32_t, uint64_t>> lost_gradients_; ///< By replica and iteration.
};

} // namespace troupe
