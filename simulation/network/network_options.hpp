// SPDX-License-Identifier: Apache-2.0
// The options of a simulated network.
#pragma once

#include "actors/net/silence_timeout.hpp"
#include "actors/recording/records.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace troupe {

class network_messages;

/// A message about to travel.
struct passage {
  uint32_t end = 0;      ///< The replica at one of its ends; else the number of replicas.
  const char* kind = ""; ///< The message's kind: "PushGradient", "Token".
  uint64_t count = 0;    ///< Messages that travelled at this end before.
};

/// A link on which everything takes longer, in both directions: a bad cable, a crowded path.
struct slow_link {
  uint32_t one = 0; ///< The replicas, or hosts of replicas, at its ends; in any order.
  uint32_t other = 0;
  double factor = 1; ///< By which latency and the time of its bytes are multiplied; at least 1.
};

/// Nodes, links and the cards that they are plugged into. A job has a node for each replica, some
/// for the variables (an owner and its accumulator stand together), and one for the chief, the
/// token queue and the recorder. Messages within a node take no time.
struct network_options {
  uint32_t owners = 1; ///< Nodes for variables.

  /// How long a message is on its way, beside what its bytes take; empty: it takes no time.
  std::function<job_time(const passage&)> latency;

  /// Speed of each node's card in each direction, which transfers share; 0 = without limit.
  double bytes_per_second = 0;

  std::optional<slow_link> slowed = {}; ///< In a job of collectives.

  uint64_t model_bytes = 0;    ///< That a replica reads of all variables together.
  uint64_t gradient_bytes = 0; ///< That it pushes for all variables together.

  /// How long the node of a variable is busy with a gradient that has come, one after the other;
  /// given the node's number and how many it was busy with before. Empty: not at all.
  std::function<job_time(uint32_t owner, uint64_t count)> service;

  /// Whether the job begins and ends by a roll call, as one of several processes: a node takes no
  /// part in it before it has entered (`simulated_processes`).
  bool meets_at_roll_call = false;

  /// After how long other nodes know that one has crashed.
  job_time detection{0};

  /// A node of which another hears nothing for so long, because it is frozen or cut off, is given
  /// up by that one, as by a link; 0 = never: what is in the way is waited for.
  job_time silence_timeout{default_silence_timeout};

  /// Messages of other schemas than Troupe's that travel, too.
  std::shared_ptr<const network_messages> messages{};

  uint64_t seed = 0; ///< Draws which messages are lost, doubled or late, where faults say so.

  /// True if anything takes time: else there is no need for a network.
  [[nodiscard]] bool takes_time() const {
    return latency || service || (bytes_per_second > 0 && model_bytes + gradient_bytes > 0);
  }
};

} // namespace troupe
