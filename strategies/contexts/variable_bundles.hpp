// SPDX-License-Identifier: Apache-2.0
// Variables that lie together on a device, and are read and updated together.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/training/variable_bundle.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/values/variable.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// Variables on one stream of a device, as their owners lend them.
struct lent_variables {
  gpu_actor owner; ///< The actor of the device.
  uint32_t stream = 0;
  device where;
  std::vector<size_t> positions; ///< Among the variables that were asked for.
  std::vector<std::shared_ptr<owned_variable>> variables;
};

/// Groups the variables that lie on one stream; a variable that is alone there is left out. A
/// variable with copies on several devices is in a group of each.
/// @pre Their owners stand in this process. Cost: a request for each, one after the other.
[[nodiscard]] std::vector<lent_variables> lent_together(strategy& strategy,
                                                        std::span<const variable> variables);

/// The bundles of a strategy for runs, where replicas meet. A job with a chief has its own.
///
/// Thread: that of the strategy; replicas of a run may read.
class variable_bundles {
public:
  explicit variable_bundles(strategy& strategy) : strategy_(strategy) {}

  variable_bundles(const variable_bundles&) = delete;
  variable_bundles& operator=(const variable_bundles&) = delete;

  ~variable_bundles() { end(); }

  /// Puts trained variables that lie together into bundles; if there are new variables, anew.
  /// Blocks. @pre No run is under way.
  void make();

  /// Ends the bundles, since other actors change the variables from now on.
  void end();

  /// All bundles; their variables are given by index.
  [[nodiscard]] std::span<const bundle_of_variables> all() const { return bundles_; }

private:
  strategy& strategy_;
  std::vector<bundle_of_variables> bundles_;
  size_t made_of_ = 0; ///< Number of the strategy's variables when the bundles were made.
};

} // namespace troupe
