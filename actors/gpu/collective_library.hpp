// SPDX-License-Identifier: Apache-2.0
// Collectives between devices, as NCCL makes them for GPUs and a twin for parts of the CPU.
#pragma once

#include "actors/recording/records.hpp"
#include "actors/world/compute_device.hpp"
#include "messages/collective_message.hpp"
#include "messages/errors/errc.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace troupe {

/// Tells one group of devices from all others, in whatever process they are.
using collective_id = std::array<std::byte, 128>;

/// One array of a collective of devices.
///
/// | kind           | input    | output                    |
/// |----------------|----------|---------------------------|
/// | all_reduce     | [n]      | [n]        the sum        |
/// | all_gather     | [n]      | [size * n] all, by rank   |
/// | reduce_scatter | [size*n] | [n]        of the sum     |
/// | broadcast      | [n]      | [n]        the root's     |
///
/// Tensors are row-major, of any shape, of one dtype, and on the participant's device.
struct device_collective {
  collective_kind kind = collective_kind::all_reduce;
  tensor input;
  tensor output; ///< May share the memory of the input, where they are as long.
  uint32_t root = 0;
};

/// A device's part in the collectives of a group. All participants ask for the same, in the same
/// order; that is not checked here.
///
/// Thread: one at a time, but for `abort`.
class collective_participant {
public:
  /// Ends its part; as `abort` if something is still under way.
  virtual ~collective_participant() = default;

  /// Whether it is done with what it was asked, but for what streams do, and may be asked for the
  /// next thing. Joining takes until all are there. Looks, and does not wait.
  /// Errors: unavailable, if the group has failed or was aborted.
  [[nodiscard]] virtual expected<bool> is_ready() = 0;

  /// Asks a stream of the device for collectives, all as one. Once it is ready again they are part
  /// of what the stream has to do; the stream has done them when all participants have.
  /// Errors: unavailable, as above; type_mismatch for a dtype that cannot be added.
  /// @pre is_ready()
  [[nodiscard]] virtual expected<void> ask(std::span<const device_collective> collectives,
                                           compute_stream& on)
    = 0;

  /// Gives up whatever is under way: streams that wait for others go on, with results that mean
  /// nothing. Waits for no device and no peer: work that would wait is done on a thread of its own.
  /// Thread: any.
  virtual void abort() = 0;
};

/// Waits until a participant is ready, on the calling thread; `abort` ends the wait.
/// Errors: as `is_ready`; deadline_exceeded after `timeout`.
[[nodiscard]] expected<void> settle(collective_participant& participant, job_time timeout);

/// Brings devices together.
class collective_library {
public:
  virtual ~collective_library() = default;

  [[nodiscard]] virtual std::string_view name() const = 0; ///< "NCCL".

  /// A new group's, which the caller has to tell all its participants. Errors: resource.
  [[nodiscard]] virtual expected<collective_id> make_id() = 0;

  /// Begins to join a group, and does not wait for the others.
  /// @pre rank < size; the device outlives the participant. Errors: resource, invalid_argument.
  [[nodiscard]] virtual expected<std::unique_ptr<collective_participant>>
  join(const collective_id& group, uint32_t rank, uint32_t size, compute_device& device) = 0;
};

} // namespace troupe
