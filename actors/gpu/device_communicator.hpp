// SPDX-License-Identifier: Apache-2.0
// The communicator of a process with devices: it has devices combine arrays, in place of messages.
#pragma once

#include "actors/gpu/collective_library.hpp"
#include "actors/interfaces/interfaces.hpp"
#include "actors/observing/observed.hpp"
#include "actors/world/look_plan.hpp"
#include "actors/world/world.hpp"

#include <caf/typed_response_promise.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The place of a device communicator in its group, and its devices and actors.
struct device_communicator_config {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string process;     ///< For people: "worker:2".
  communicator_actor host; ///< This process's, among the same processes; ends with this one.
  std::shared_ptr<collective_library> library;
  std::optional<collective_id> id;              ///< Id of the devices' group; only rank 0 has it.
  gpu_actor gpu;                                ///< The actor of `device`; ends with this one.
  std::shared_ptr<compute_device> device;       ///< Its first stream is for collectives alone.
  job_time deadline = std::chrono::seconds{60}; ///< For calls without their own.
  troupe::world* world = nullptr;               ///< Outlives the actor.
};

/// Whether devices can make a call: all_reduces and broadcasts, and a reduce_scatter of rows that
/// can be shared evenly; of one contribution of each process, or of several that are f32 or f64. An
/// all_gather of one contribution of each process, too: but all have to bring as many rows, or are
/// told at the agreement that they mean other things. The same for all processes.
[[nodiscard]] bool is_for_devices(const collective_call& call, uint32_t size);

/// The text that must be the same in all processes before a device is asked: devices do not
/// compare, and would wait for ever, or write beyond an array.
/// @param calls At least one; all are made as one.
[[nodiscard]] std::string agreement_on(std::span<const collective_call> calls);

/// Devices combine arrays faster than messages do, but they do not ask whether all mean the same,
/// do not say which process is missing, and do not stop when one is gone. So this actor keeps the
/// process's other communicator beside it: each call is first agreed on there (a barrier, by name,
/// dtype and shape), and what breaks that one's group takes the devices' group with it.
///
///     call -> agreeing -- barrier --> agreed -- its turn --> on the device -- done --> answered
///
/// Calls that are to be made together (`collective_call::followers`) are collected first, and then
/// go this way as one: one barrier, and one call of the device.
///
/// | what goes wrong                    | noticed by             | then                        |
/// |------------------------------------|------------------------|-----------------------------|
/// | another call, or no call           | the barrier            | as without devices          |
/// | a process is gone                  | the other communicator | the devices are let go, and |
/// | the devices do not come together,  | this actor's own watch | all calls fail, here and at |
/// | or do not end a collective in time |                        | all peers, with the reason  |
/// | the device is lost                 | its gpu actor          | the same                    |
///
/// A process that is gone may have done its part of a call that the devices have begun: they have
/// half a second to end it before they are let go.
///
/// Calls that are not for devices go to the other communicator as they are.
/// Cost: a barrier of small messages beyond what the devices do.
struct device_communicator_state {
  static inline const char* name = "device communicator";

  using promise = caf::typed_response_promise<collective_result>;

  enum class phase : uint8_t { collecting, agreeing, agreed, on_device };

  /// Calls that are made as one, and are not answered yet.
  struct open_batch {
    std::shared_ptr<std::vector<collective_call>> calls;
    std::vector<promise> answers; ///< By call.
    phase at = phase::collecting;
    job_time since{0}; ///< In its phase.
    job_time timeout{0};
  };

  device_communicator_config config;
  std::shared_ptr<collective_participant> participant; ///< Null until the id is known.
  bool is_ready = false;                               ///< Whether all have joined.
  job_time began{0};                                   ///< To join.
  uint64_t batches = 0;
  std::map<uint64_t, open_batch> open; ///< The last one may be collecting.
  uint32_t awaited = 0;                ///< Calls that are to be made together with the last one.
  std::optional<error> broken;
  look_plan looks; ///< For calls that take too long.
};

/// The behaviour of a device communicator.
communicator_actor::behavior_type
device_communicator(observed_pointer<communicator_actor, device_communicator_state> self,
                    device_communicator_config config);

} // namespace troupe
