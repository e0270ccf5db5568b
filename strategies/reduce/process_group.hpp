// SPDX-License-Identifier: Apache-2.0
// The group of processes that run replicas of one strategy, and the calls between them.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/net/placement.hpp"
#include "strategies/reduce/cross_device_ops.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The data that this process needs to combine values with the others. All processes have the same
/// number of replicas.
struct process_group {
  uint32_t rank = 0;                      ///< The rank of this process.
  uint32_t size = 1;                      ///< Processes.
  uint32_t replicas_each = 1;             ///< Replicas of one process.
  communicator_actor communicator;        ///< This process's.
  communication_options options{};        ///< For calls that give no options.
  bool fixed_order = true;                ///< As `collective_call::fixed_order`.
  job_time timeout{0};                    ///< For a collective, unless options say otherwise.
  std::vector<std::string> names{};       ///< Names of the processes, by rank: "worker:2".
  bool has_devices = false;               ///< Whether the communicators combine arrays on devices.
  troupe::placement* placement = nullptr; ///< Where the communicators are; outlives the group.

  [[nodiscard]] uint32_t replica_count() const { return size * replicas_each; }

  [[nodiscard]] uint32_t first_replica() const { return rank * replicas_each; }
};

/// The algorithm that an implementation stands for. `nccl` is none of ours: it stands for
/// `automatic`, for the values that devices cannot reduce.
/// Errors: throws `failure` with unimplemented for `nccl` without devices.
[[nodiscard]] collective_algorithm algorithm_of(communication_implementation implementation,
                                                bool has_devices);

/// Whether devices make the sums: if the implementation is `nccl`; or if it is `automatic`, there
/// are devices, and the order of additions is free.
[[nodiscard]] bool goes_to_devices(communication_implementation implementation,
                                   const process_group& group);

/// Whether the devices of all processes add such arrays where they lie.
/// @param contributions The arrays of this process; at least one.
/// @param group Null: there is one process.
[[nodiscard]] bool are_reduced_on_devices(std::span<const tensor> contributions,
                                          const process_group* group,
                                          const communication_options& options);

/// A positive number of seconds as a time; at most a century.
[[nodiscard]] job_time timeout_of(double seconds);

/// Gives collectives the options of a call, which win over the options of the group.
/// Errors: throws `failure`: as `communication_options::validate`, and as `algorithm_of`.
void prepare(std::span<collective_call> calls, const process_group& group,
             const communication_options& options);

/// Collectives with joined arrays: sums of many small arrays cost less as one.
struct packed_calls {
  std::vector<collective_call> calls;
  std::vector<std::vector<size_t>> members; ///< The calls that each of `calls` stands for.
};

/// The size from which on an array travels by itself, where packs have no size.
inline constexpr size_t lone_bytes = 1 << 20;

/// Lays the sums among `calls` behind each other, as `pack_by_bytes` says, the sums of the last
/// calls first: a backward pass computes the gradients of the last layers first. Each other call
/// goes by itself, in its order, before the sums. Where devices add, they make all sums at once.
/// @pre Contributions are row-major; those of one call are alike; sums are all on devices, or none.
/// Cost: a copy of the arrays that share a pack.
[[nodiscard]] packed_calls pack(const std::vector<collective_call>& calls, int64_t bytes_per_pack);

/// The results of the single calls, as views of the results of their packs.
/// @pre `results` are the results of `packed.calls`.
[[nodiscard]] std::vector<tensor> unpack(const packed_calls& packed,
                                         const std::vector<collective_call>& calls,
                                         const std::vector<tensor>& results);

} // namespace troupe
