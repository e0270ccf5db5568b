// SPDX-License-Identifier: Apache-2.0
// The gpu: an actor that owns a device and its streams, and has it do the work of others.
#pragma once

#include "actors/gpu/device_ledger.hpp"
#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/world/compute_device.hpp"
#include "actors/world/world.hpp"

#include <caf/typed_response_promise.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>

namespace troupe {

/// The device of a gpu, and its deadline.
struct gpu_config {
  std::shared_ptr<compute_device> device;
  job_time deadline = std::chrono::seconds{60}; ///< For work without its own.
  troupe::world* world = nullptr;               ///< Outlives the actor.
};

/// No thread that runs actors may wait for a device. Work is launched on a computing thread, one
/// piece of a stream at a time and in the order in which it was asked for; the device says by a
/// message when it is done, and until then its asker, a coroutine, is suspended. An asker that is
/// answered when its work is queued has been told by then what the launch came to; the work stays
/// open, and is watched, until the device has done it.
///
/// | what goes wrong                      | the asker is told                                   |
/// |--------------------------------------|-----------------------------------------------------|
/// | the launch throws                    | its asker, in the answer; the device goes on        |
/// | the device refuses one piece of work | its asker: resource; the device goes on             |
/// | the device is lost: a sticky error   | all that wait, and all that ask then: unavailable   |
/// | work is not done in time             | the same: deadline_exceeded; nothing stops a device |
struct gpu_state {
  static inline const char* name = "gpu";

  using promise = caf::typed_response_promise<device_work_done>;

  /// Work that the device has not done yet.
  struct open_work {
    std::shared_ptr<const device_work> work; ///< The device may need what it refers to.
    promise answer;                          ///< Not pending any more, once it is given.
    job_time began{0};
    std::exception_ptr thrown{};
    bool is_launched = false;         ///< The device has been told all of it.
    std::optional<error> completed{}; ///< The device has done it, or why it refuses.
  };

  gpu_config config;
  device_ledger ledger;
  std::map<uint64_t, open_work> open;
  std::optional<caf::error> lost; ///< Why nothing can be asked of the device any more.
  size_t launching = 0;           ///< Pieces of work that the device is being told.
  bool is_watching = false;
  bool is_leaving = false; ///< Once all that was asked of the device is done.
};

/// The behaviour of a gpu. It ends when its device is lost, all have been told and nothing is being
/// launched any more: that is the reason of its end. And when it is sent an exit and its device has
/// done what it was asked for.
gpu_actor::behavior_type gpu(observed_pointer<gpu_actor, gpu_state> self, gpu_config config);

} // namespace troupe
