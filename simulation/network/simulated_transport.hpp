// SPDX-License-Identifier: Apache-2.0
// The way of a message through a simulated network.
#pragma once

#include "actors/net/transport.hpp"
#include "simulation/network/blocked_links.hpp"
#include "simulation/network/card_transfers.hpp"
#include "simulation/network/delivery.hpp"
#include "simulation/network/fault_injector.hpp"
#include "simulation/network/in_flight_message.hpp"
#include "simulation/network/message_outcomes.hpp"
#include "simulation/network/network_options.hpp"
#include "simulation/network/simulated_nodes.hpp"
#include "simulation/network/timed_events.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe {

/// A message sets out, is lost or doubled by a fault, passes the cards if it has bytes to be
/// counted, travels for its latency, arrives, waits for the service of its node if it is a
/// gradient, and is delivered. It is held at its start while its node is frozen, and at its end
/// while something is in the way.
///
/// Messages between two nodes keep their order, but bulk ones (gradients, variables) and the others
/// pass each other: a token never queues behind 100 MB. Draws are those of the ends and their count
/// of messages, so runs that differ in one option are compared on the same draws. A gradient that
/// is recalled while its bytes are on their way gives its share of the cards back, and is answered
/// by `cancelled` at home.
class simulated_transport final : public transport {
public:
  /// All outlive this.
  simulated_transport(const network_options& options, simulated_nodes& nodes, timed_events& events,
                      const blocked_links& blocked, fault_injector& injector);

  std::function<void(const delivery&)> on_delivery; ///< Before the receiver has it. May be empty.

  void send(const node_address& from, parcel parcel) override;

  /// Multiplies the time that a message takes at this node's link; 1 = as it was.
  void slow_down(node_index node, double factor);

  /// The node is busy with no gradient any more.
  void end_service(node_index node) { links_[node].busy_until = events_.now(); }

  /// Loses the messages that pass the node's card now.
  void lose_transfers(node_index node);

  /// Loses the messages between two nodes that are held.
  void lose_held(node_index one, node_index other);

  /// Messages that are held go on, but where something is still in their way; they are lost if the
  /// lives of their senders are over.
  void release_held();

  [[nodiscard]] message_outcomes& outcomes() { return outcomes_; }

private:
  /// A node's link to the network.
  struct link_state {
    double factor = 1;
    uint64_t messages = 0; ///< That draws of latencies are numbered by.
    uint64_t served = 0;
    job_time busy_until{0};
  };

  void set_out(in_flight_message message);
  void leave(in_flight_message message);
  void travel(in_flight_message message);
  void arrive(in_flight_message message);
  void hand_over(in_flight_message message);
  void recall(const in_flight_message& message);
  void recall_transfers(node_index from);
  void refuse(const node_address& from, const parcel& parcel, const error& reason);
  [[nodiscard]] passage passage_of(const in_flight_message& message);
  [[nodiscard]] double factor_of(const in_flight_message& message) const;
  [[nodiscard]] uint64_t bytes_of(const in_flight_message& message) const;

  const network_options& options_;
  simulated_nodes& nodes_;
  timed_events& events_;
  const blocked_links& blocked_;
  fault_injector& injector_;
  std::optional<card_transfers> transfers_;             ///< If cards have a limit.
  std::vector<link_state> links_;                       ///< By node.
  std::unordered_map<uint64_t, job_time> last_arrival_; ///< Between two nodes, of what is not bulk.
  std::vector<in_flight_message> held_;
  message_outcomes outcomes_;
};

} // namespace troupe
