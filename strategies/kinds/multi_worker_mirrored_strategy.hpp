// SPDX-License-Identifier: Apache-2.0
// A strategy of several processes, each with replicas and copies of all variables.
#pragma once

#include "strategies/contexts/strategy.hpp"
#include "strategies/reduce/named_devices.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe {

/// How a multi worker mirrored strategy is laid out. All processes are given the same options, but
/// for the placement.
struct multi_worker_mirrored_options {
  /// The devices of this process, with one replica on each, as `mirrored_options::devices`. Every
  /// process has the same number.
  std::vector<std::string> devices = {"cpu:0"};
  /// Where the others are, as `server::placement` tells; null: this process is alone. Outlives the
  /// strategy.
  troupe::placement* placement = nullptr;
  /// The processes with replicas, by rank, the chief first, as `server::trainers` tells; one, or
  /// none: this process is alone.
  std::vector<std::string> workers{};
  communication_options communication{}; ///< For collectives without options of their own.
  /// Whether sums are added in the order of replicas, so that their bits do not depend on how many
  /// processes the replicas are in. Not with the implementation `ring`, which has its own order.
  bool fixed_order = true;
  /// The devices that the replicas of this process compute on, in turn; empty: the world's
  /// computing threads.
  std::vector<std::shared_ptr<compute_device>> compute_devices{};
  /// The library by which a device reduces with the devices of other processes: for the
  /// implementation `nccl`, and for `automatic` if the order is free. Null: NCCL if `devices` are
  /// GPUs, else none. All processes have one, or none has.
  std::shared_ptr<collective_library> device_collectives{};
  /// The device that does so: not one of `compute_devices`, but perhaps another handle to the same
  /// GPU. Null: the first of `devices`, if they are GPUs.
  std::shared_ptr<compute_device> collective_device{};
  /// The time for a run; and for a collective, if `communication` has no timeout.
  job_time deadline = std::chrono::minutes{10};
  gpu_source gpus{}; ///< Where GPUs among `devices` come from, and their collectives.
  /// The devices that the copies of this process lie on, as `mirrored_options::variable_devices`.
  std::vector<std::shared_ptr<compute_device>> variable_devices{};
};

/// Each process runs the same program. Its replicas meet as the replicas of a `mirrored_strategy`
/// do. Collectives then reduce between the processes, so that all end with the same values. Every
/// process holds all variables, and makes the same updates: only gradients travel.
///
/// All processes have to make the same calls in the same order: variables, reductions, reads of
/// variables that are synchronised on read, aggregated changes. The merge function of a merge_call
/// runs in each of them. A process that makes another call is found by name, dtype and shape of the
/// call. Then no process goes on: after a failed collective, all later ones fail.
///
/// | property                  | value                                                           |
/// |---------------------------|-----------------------------------------------------------------|
/// | `num_replicas_in_sync`    | devices of all processes                                        |
/// | `replica_id_in_sync_group`| counted over all processes, in the order of their ranks         |
/// | local results, devices    | those of this process                                           |
/// | a tensor given to `reduce`| counts once for each process                                    |
/// | initial values            | those of the first process                                      |
/// | `should_checkpoint`       | true in the first process; but all have to make the call        |
///
/// Its destructor waits for the other processes to come to theirs, unless an exception is under
/// way.
/// Source: tf.distribute.MultiWorkerMirroredStrategy.
class multi_worker_mirrored_strategy final : public strategy {
public:
  /// Errors: throws `failure`: invalid_argument as `mirrored_strategy`, as
  /// `communication_options::validate`, and if workers are missing; failed_precondition if
  /// processes have other numbers of replicas, or another order of additions; unimplemented for
  /// `nccl` without devices that can; deadline_exceeded and unavailable, naming the process that is
  /// not there in time.
  explicit multi_worker_mirrored_strategy(troupe::world& world,
                                          multi_worker_mirrored_options options = {});

private:
  void check_replicas();
};

/// As tf.distribute called it first.
using collective_all_reduce_strategy = multi_worker_mirrored_strategy;

} // namespace troupe
