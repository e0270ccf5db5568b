// SPDX-License-Identifier: Apache-2.0
// The reducer, which combines the values of all replicas, wherever they lie.
#pragma once

#include "actors/world/task.hpp"
#include "kernels/tensor/tensor.hpp"
#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/reduce/input_arrays.hpp"
#include "strategies/values/leaves.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

class activity;
class replica_devices;
struct process_group;

/// The processes, devices and operations of a reduction.
struct reduction_site {
  const process_group* group = nullptr; ///< The processes that run replicas; null: this one alone.
  const replica_devices* devices = nullptr;           ///< Replicas of this process compute on them.
  std::shared_ptr<const cross_device_ops> operations; ///< For values of this process; never null.
  uint32_t replicas = 1;                              ///< Replicas of all processes.
  uint64_t run_count = 0;                             ///< Runs so far: see `process_exchange`.
  /// Runs work on the world's computing threads, where calls to the strategy are refused.
  std::function<task<void>(activity&, std::function<void()>)> offload;

  /// Work that moves fewer bytes takes less time than handing it over.
  static constexpr size_t few_bytes = 1 << 19;

  /// Runs `work()` by `offload` if it moves many bytes, else at once.
  /// Errors: rethrows what `work` threw.
  template <class Work>
  [[nodiscard]] task<std::invoke_result_t<Work&>> compute(activity& host, size_t bytes,
                                                          Work work) const {
    if (bytes < few_bytes) co_return work();
    auto result = std::make_shared<std::optional<std::invoke_result_t<Work&>>>();
    std::function<void()> run
      = [work = std::move(work), result]() mutable { result->emplace(work()); };
    auto working = offload(host, std::move(run));
    co_await working;
    co_return std::move(**result);
  }
};

/// A reduction as a caller asks for it.
struct reduction_call {
  std::string name; ///< For errors, and to tell calls apart: "all_reduce SUM"; the same everywhere.
  reduce_op op = reduce_op::sum;
  /// The dimensions of each replica's value that are reduced first; none: the value stays whole.
  std::optional<std::vector<int64_t>> axes{};
  communication_options options{};
};

/// A gradient of each replica of this process.
struct replica_gradients {
  std::string name; ///< The variable's name, for errors. Empty: the call has one gradient.
  device_values values;
  std::optional<destinations> to{}; ///< Where the sum is wanted; nothing: where the values lie.

  /// The variable that the gradients are for. Devices add rows in its dtype.
  struct target {
    dtype type = dtype::f32;
    shape extents;
  };

  std::optional<target> variable{};
  std::vector<device> places{}; ///< The variable's places: sums that devices make stay there.
};

/// Combines the values that replicas bring, where they lie:
///
/// | contributions             | are combined by                                                  |
/// |---------------------------|------------------------------------------------------------------|
/// | on the host               | kernels of the host, or the cross-device operations              |
/// | on devices of one process | the device that the first of them lies on, once they are there   |
/// | of several processes      | collectives, by messages                                         |
/// | on devices of several     | NCCL, if that was asked for or the order of additions is free    |
///
/// Arrays are added in the order of replicas, so that all of these ways give the same bits. Only
/// NCCL, and algorithms that are chosen by name, add in an order of their own. All collectives of a
/// call are made together, in packs.
///
/// All processes have to make a call. Errors: throws `failure`: invalid_argument if another process
/// makes another call, and for invalid options; deadline_exceeded and unavailable,
/// naming the process that is missing or gone; as `move_arrays`.
///
/// Lives until its tasks are over. Thread: the actor that it was made for.
class reducer {
public:
  /// @param site Lives as long as its strategy.
  reducer(reduction_site site, activity& host) : site_(std::move(site)), host_(&host) {}

  reducer(const reducer&) = delete;
  reducer& operator=(const reducer&) = delete;

  [[nodiscard]] const process_group* group() const { return site_.group; }

  /// One leaf for each group, as `reduce_leaves`.
  /// @returns One list of leaves for all takers; or, where devices hold some, a list for each, with
  /// the arrays where its own lay. @param takers Replicas of this process that take the result.
  [[nodiscard]] task<std::vector<std::vector<leaf>>>
  reduce(reduction_call call, std::vector<leaf_group> groups, size_t takers) const;

  /// Each of `values`, in their order, as one gradient: as `reduce_components`.
  /// @returns The gradient on the host; or, if devices have made it and its variable has places,
  /// one on each place.
  /// If there is one process, a device adds the rows that lie on it, index by index.
  [[nodiscard]] task<std::vector<std::vector<gradient>>>
  reduce_gradients(reduction_call call, std::vector<replica_gradients> values) const;

  /// Gradients where owners take them: on each of their variable's places, if they lie on a device,
  /// else on the host. @param copies For each variable, one gradient in different places; at least
  /// one. @param places For each gradient, the places of its variable.
  [[nodiscard]] task<std::vector<std::vector<gradient>>>
  bring(std::vector<std::vector<gradient>> copies, std::vector<std::vector<device>> places) const;

  /// The parts of all replicas behind each other along `axis`, as `cross_device_ops::gather`.
  /// @returns One array for all takers; or, where parts lie on devices, one for each, beside its
  /// part.
  [[nodiscard]] task<std::vector<tensor>> gather(reduction_call call, std::vector<tensor> parts,
                                                 int64_t axis) const;

  /// The rows of all processes, behind each other in the order of ranks; each of `own` by itself.
  /// Shape: own  [rows, ...], of any number of rows
  [[nodiscard]] task<std::vector<tensor>> gather_rows(std::string name,
                                                      std::vector<tensor> own) const;

  /// The value of the first process, for all. @param own An array, of the same shape everywhere;
  /// rows; or a double.
  [[nodiscard]] task<leaf> broadcast(reduction_call call, leaf own) const;

  /// The array of the first process, for all. The first process also learns if another makes
  /// another call.
  /// Cost: a barrier.
  [[nodiscard]] task<tensor> share_first(std::string name, tensor own) const;

  /// Runs `work()` on the world's computing threads if it moves many bytes, else at once.
  /// Errors: rethrows what `work` threw.
  template <class Work>
  [[nodiscard]] auto compute(size_t bytes, Work work) const {
    return site_.compute(*host_, bytes, std::move(work));
  }

  /// Copies arrays to the host's memory, wherever they lie. @param arrays Live until this is over.
  [[nodiscard]] task<void> bring_to_host(std::vector<tensor*> arrays) const;

private:
  struct combined {
    input_arrays inputs;
    std::vector<leaf> leaves;
  };

  [[nodiscard]] task<combined> combine(reduction_call call, std::vector<leaf_group> groups) const;

  reduction_site site_;
  activity* host_;
};

} // namespace troupe
