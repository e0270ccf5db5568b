// SPDX-License-Identifier: Apache-2.0
// The clocks of a simulated job's nodes, which may be wrong.
#pragma once

#include "actors/world/clock_error.hpp"
#include "simulation/network/simulated_placement.hpp"

#include <vector>

namespace troupe {

class virtual_clock;

/// Timers of actors go by the clock of the node where they stand. All clocks are right until one is
/// set.
class node_clocks {
public:
  /// @param clock The virtual world's; it and `placement` outlive this.
  node_clocks(virtual_clock& clock, const simulated_placement& placement, node_index node_count)
    : clock_(clock), placement_(placement), errors_(node_count) {}

  /// All are right again.
  ~node_clocks();

  node_clocks(const node_clocks&) = delete;
  node_clocks& operator=(const node_clocks&) = delete;

  /// The node's clock goes ahead by so much, and from now on runs so many times as fast as it
  /// should.
  void set(node_index node, job_time ahead, double rate);

  /// As it is now.
  [[nodiscard]] const clock_error& error_of(node_index node) const { return errors_[node]; }

private:
  virtual_clock& clock_;
  const simulated_placement& placement_;
  std::vector<clock_error> errors_; ///< By node.
  bool are_set_ = false;
};

} // namespace troupe
