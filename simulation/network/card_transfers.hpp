// SPDX-License-Identifier: Apache-2.0
// The messages that pass network cards now.
#pragma once

#include "simulation/network/fair_share.hpp"
#include "simulation/network/in_flight_message.hpp"
#include "simulation/network/timed_events.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

/// Holds each message for as long as its bytes take, where transfers share the cards of nodes.
class card_transfers {
public:
  /// @param bytes_per_second As in `fair_share`. @param events Outlives this.
  /// @param on_end Gets each message when its last byte has left.
  card_transfers(double bytes_per_second, timed_events& events,
                 std::function<void(in_flight_message)> on_end)
    : cards_(bytes_per_second), events_(events), on_end_(std::move(on_end)) {}

  /// @param factor By which its bytes take longer than the cards make them.
  void begin(in_flight_message message, uint64_t bytes, double factor);

  /// Gives up all from or to a node. @returns Them, in the order of beginning.
  [[nodiscard]] std::vector<in_flight_message> give_up(node_index node);

  /// Gives up those of a node that it has recalled. @returns Them, in the order of beginning.
  [[nodiscard]] std::vector<in_flight_message> give_up_recalled(node_index from);

private:
  void plan_look(job_time time);
  void look();
  [[nodiscard]] in_flight_message take(uint64_t number);

  fair_share cards_;
  timed_events& events_;
  std::function<void(in_flight_message)> on_end_;
  std::unordered_map<uint64_t, in_flight_message> messages_; ///< By their numbers in `cards_`.
  std::optional<job_time> next_look_;                        ///< When an event looks at them.
};

} // namespace troupe
