// SPDX-License-Identifier: Apache-2.0
// When a node gives another up because it hears nothing of it.
#pragma once

#include "actors/net/address.hpp"
#include "actors/recording/records.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// A link gives its peer up after some ticks in a row without a sign of life, and every node gives
/// one in each tick (`link`, `ticks_in_timeout`). Thousands of simulated links that tick would
/// cost more than the job that they watch over; but as long as nothing is in the way no node falls
/// silent. So this is told of what is in the way, and says when the link would have given up.
class silence_watch {
public:
  /// A node that is not heard, and the peer that does not hear it.
  using pair = std::pair<node_index, node_index>;

  /// @param timeout 0 = no node is ever given up.
  explicit silence_watch(job_time timeout) : timeout_(timeout) {}

  [[nodiscard]] bool is_off() const { return timeout_ == job_time{0}; }

  /// Takes in whether `to` hears of `from` from now on.
  /// @param rate Speed of the clock of `to`, as `clock_error::rate`.
  /// @returns If it has just ceased to, when it will give up: the tick at which it has not heard of
  /// it for the whole timeout, counted from the tick in which it last did.
  std::optional<job_time> look(pair from_to, bool is_silent, job_time now, double rate = 1);

  /// Pairs that are given up now; they are watched no more.
  [[nodiscard]] std::vector<pair> take_given_up(job_time now);

  /// The node has ended: it waits for no peer any more, and no peer for it.
  void forget(node_index node);

private:
  job_time timeout_;
  std::map<pair, job_time> given_up_at_; ///< Pairs that are silent.
};

} // namespace troupe
