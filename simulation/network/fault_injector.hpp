// SPDX-License-Identifier: Apache-2.0
// The messages that are lost, doubled or late on purpose.
#pragma once

#include "actors/recording/records.hpp"
#include "simulation/network/simulated_nodes.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// How often a message suffers a fault. Unit: probabilities from 0 to 1.
struct fault_probabilities {
  double lost = 0;
  double duplicated = 0;
  double reordered = 0;
  /// By which a reordered message comes later than its bytes and its latency make it.
  job_time late{std::chrono::milliseconds{1}};
};

/// The messages that suffer faults, and how often.
struct fault_injection {
  std::string kind;           ///< Empty = every kind.
  std::set<node_index> nodes; ///< They send or get the messages; empty = any.
  fault_probabilities probabilities;
};

/// The kinds of messages that may suffer faults: those that replicas ask for, and ask again.
[[nodiscard]] std::span<const std::string_view> repeatable_messages();

/// The faults that one message suffers.
struct message_faults {
  bool is_lost = false; ///< Then there is no other.
  bool is_duplicated = false;
  std::optional<job_time> late; ///< If it is reordered, by how much it comes later.
};

/// Draws the faults of messages. The draws are those of the replica at an end of the message's way
/// and its count of messages that might have suffered one.
class fault_injector {
public:
  /// @param nodes Outlives this. @param seed Names the draws.
  fault_injector(const simulated_nodes& nodes, uint64_t seed)
    : nodes_(nodes), seed_(seed), draws_(nodes.node_count()) {}

  /// Injects from now on. Among several injections for a message, one of its own kind comes first,
  /// and among these the last. @returns The injection's number, for `end`.
  uint64_t begin(fault_injection injection);

  void end(uint64_t number) { injections_.erase(number); }

  /// The faults of a message that leaves its node now.
  [[nodiscard]] message_faults draw(node_index from, node_index to, std::string_view kind);

private:
  [[nodiscard]] const fault_probabilities* probabilities_of(node_index from, node_index to,
                                                            std::string_view kind) const;

  const simulated_nodes& nodes_;
  uint64_t seed_;
  std::map<uint64_t, fault_injection> injections_;
  uint64_t injection_count_ = 0;
  std::vector<uint64_t> draws_; ///< By node, so far.
};

} // namespace troupe
