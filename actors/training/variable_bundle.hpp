// SPDX-License-Identifier: Apache-2.0
// The bundle: the variables of one stream of a device, read and changed together by the steps of a
// job.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/training/owned_variable.hpp"
#include "actors/world/device_end.hpp"
#include "actors/world/world.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// The variables of a bundle, and their device.
struct bundle_config {
  std::string name; ///< For errors: "'w' and 3 more".
  /// Lent by their owners. At least one; all lie on the same stream.
  std::vector<std::shared_ptr<owned_variable>> variables;
  gpu_actor device; ///< Where they lie.
  uint32_t stream = 0;
  troupe::world* world = nullptr; ///< Outlives the actor.
};

/// An update that waits for its release.
struct held_bundle {
  apply_bundle update;                         ///< Keeps the gradients.
  std::vector<std::vector<gradient>> placed{}; ///< Where the variables lie, by variable.
};

/// A small step on a device takes as long as its messages: some ten for each variable, if each is
/// read, accumulated and updated by itself. A bundle stands where owners stand in a step, and an
/// accumulator collects for all of its variables, so that there are ten in all.
///
/// Owners hold the variables as ever, and answer all other requests. The changes of owners, and
/// those of the bundle, go to one stream, which makes one after the other.
///
/// A bundle keeps the values after its last request, and gives them to readers without another one.
/// It keeps them between two updates only: an update writes a variable where it lies if no reader
/// has it. It ends when the device's actor has answered all of its requests.
struct bundle_state {
  static inline const char* name = "variable_bundle";

  bundle_config config;
  std::vector<tensor> values;        ///< The variables as they are; empty: not known.
  std::shared_ptr<held_bundle> held; ///< Null: none.
  size_t at_device = 0;              ///< Requests that the device's actor has not answered yet.
  std::vector<caf::typed_response_promise<bundle_values>> readers; ///< They wait for values.
  device_end end;
  bool is_leaving = false;
};

/// The behaviour of a bundle.
bundle_actor::behavior_type variable_bundle(observed_pointer<bundle_actor, bundle_state> self,
                                            bundle_config config);

} // namespace troupe
