// SPDX-License-Identifier: Apache-2.0
// The processes that run replicas of one strategy together, as each of them knows them.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/net/placement.hpp"
#include "strategies/reduce/cross_device_ops.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// What this process needs to combine values with the others. All of them have as many replicas.
struct process_group {
  uint32_t rank = 0;                      ///< Of this process.
  uint32_t size = 1;                      ///< Processes.
  uint32_t replicas_each = 1;             ///< Replicas of one process.
  communicator_actor communicator;        ///< This process's.
  communication_options options{};        ///< Of calls that say nothing else.
  bool fixed_order = true;                ///< As `collective_call::fixed_order`.
  job_time timeout{0};                    ///< Of a collective, unless options say otherwise.
  std::vector<std::string> names{};       ///< Of the processes, by rank: "worker:2".
  bool has_devices = false;               ///< Whether the communicators combine arrays on devices.
  troupe::placement* placement = nullptr; ///< Where the communicators are; outlives the group.

  [[nodiscard]] uint32_t replica_count() const { return size * replicas_each; }

  [[nodiscard]] uint32_t first_replica() const { return rank * replicas_each; }
};

/// Which algorithm an implementation stands for; `nccl` for none of ours, so that `automatic` is
/// left to what devices cannot do.
/// Errors: throws `failure` with unimplemented for `nccl` without devices.
[[nodiscard]] collective_algorithm algorithm_of(communication_implementation implementation,
                                                bool has_devices);

/// Whether devices are to make the sums: if that was asked for; or if they may, since nothing else
/// was, and the order of additions is free.
[[nodiscard]] bool goes_to_devices(communication_implementation implementation,
                                   const process_group& group);

/// Whether the devices of all processes add such arrays where they lie.
/// @param contributions Of this process; at least one. @param group Null: there is one process.
[[nodiscard]] bool are_reduced_on_devices(std::span<const tensor> contributions,
                                          const process_group* group,
                                          const communication_options& options);

/// A positive number of seconds as a time; a century at most.
[[nodiscard]] job_time timeout_of(double seconds);

/// Options of a call, over those of the group, as its collectives take them.
/// Errors: throws `failure` with invalid_argument, as `communication_options::validate`; as above.
void prepare(std::span<collective_call> calls, const process_group& group,
             const communication_options& options);

/// Sums of many small arrays cost less as one.
struct packed_calls {
  std::vector<collective_call> calls;
  std::vector<std::vector<size_t>> members; ///< Of each of these, the calls that it stands for.
};

/// From which size on an array travels by itself, where packs have no size.
inline constexpr size_t lone_bytes = 1 << 20;

/// Lays the sums among `calls` behind each other, as `pack_by_bytes` says, those of the last calls
/// first: a backward pass computes the gradients of the last layers first. All else goes by itself,
/// in its order, before the sums. Where devices add, they make all sums at once.
/// @pre Contributions are row-major; those of one call are alike; sums are all on devices, or none.
/// Cost: a copy of what shares a pack.
[[nodiscard]] packed_calls pack(const std::vector<collective_call>& calls, int64_t bytes_per_pack);

/// The results of calls out of those of their packs, by views.
/// @pre `results` are those of `packed.calls`.
[[nodiscard]] std::vector<tensor> unpack(const packed_calls& packed,
                                         const std::vector<collective_call>& calls,
                                         const std::vector<tensor>& results);

} // namespace troupe
