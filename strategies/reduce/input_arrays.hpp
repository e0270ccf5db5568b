// SPDX-License-Identifier: Apache-2.0
// The arrays of what replicas bring, wherever they lie, and how those on devices are combined.
#pragma once

#include "actors/world/task.hpp"
#include "kernels/tensor/tensor.hpp"
#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/values/leaves.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe {

class activity;
class replica_devices;

/// How arrays of replicas become one. What is one for all stays as it is, if the host lets it.
enum class array_kind : uint8_t { dense, row_numbers, row_values, one_for_all };

/// What replicas bring to one place of a nest.
struct array_group {
  array_kind kind = array_kind::dense;
  std::vector<tensor> parts; ///< By replica; one, if it is the same for all.
  std::vector<device> lay;   ///< Where each part was when it was brought.
  size_t axis = 0;           ///< Rows are laid behind each other along it.
  /// What a device has made of them. Then the parts are placeholders, and so is what the host
  /// makes.
  std::optional<tensor> outcome{};

  /// Whether some part lay on a device.
  [[nodiscard]] bool was_on_device() const;
};

/// All arrays of some leaves: what a device is asked for is asked at once. So the arrays are taken
/// out, what lies on devices is combined there or copied to the host, and put back; then the leaves
/// are reduced as any others.
struct input_arrays {
  std::vector<array_group> groups; ///< In the order of the leaves.
  bool is_even = true; ///< Whether all replicas bring as many; else it is refused later.

  /// Whether some lie on devices; false for what is refused anyway.
  [[nodiscard]] bool is_on_devices() const;
};

/// The arrays of a gradient: one if it is dense, numbers and rows if it is sparse.
[[nodiscard]] std::vector<tensor*> arrays_in(gradient& of);

/// Those of several gradients.
[[nodiscard]] std::vector<tensor*> arrays_in(std::vector<gradient>& all);

/// The arrays in leaves, in their order; numbers have none.
[[nodiscard]] input_arrays arrays_of(const std::vector<leaf_group>& leaves);

/// The arrays in one value's leaves.
[[nodiscard]] input_arrays arrays_of(const std::vector<leaf>& leaves);

/// The other way round. @pre `arrays` are those of these leaves, and even.
void put_back(std::vector<leaf_group>& leaves, const input_arrays& arrays);
void put_back(std::vector<leaf>& leaves, const input_arrays& arrays);

/// An array that is wanted elsewhere.
struct array_move {
  tensor* array; ///< Replaced by its copy there. Lives until the move is made.
  device to;
};

/// Copies arrays to where they are wanted, in pinned memory where that is the host; what is there
/// already stays as it is. One array that is wanted in one place several times is copied once.
/// @param host Its actor waits. @param devices That may be asked.
/// Errors: throws `failure`: invalid_argument for an array on a device that is not row-major, or
/// where no device of the strategy can be asked; as `activity::offload_to`.
/// Cost: a wait for each device.
[[nodiscard]] task<void> move_arrays(activity& host, const replica_devices& devices,
                                     std::vector<array_move> moves);

/// Copies arrays to the host's memory. Errors and cost: as `move_arrays`.
[[nodiscard]] task<void> bring_to_host(activity& host, const replica_devices& devices,
                                       std::vector<tensor*> arrays);

/// Has devices combine those groups of which some part lies on a device: floating arrays are added
/// in the order of replicas, with the bits of a host's sum; rows are laid behind each other, of
/// whatever dtype. The parts are brought together on the device of the first that lies on one. What
/// is not alike, holds nothing, or is an array of integers, is left as it is.
/// @param arrays Lives until this is over. Errors: as `move_arrays`.
[[nodiscard]] task<void> combine_on_devices(activity& host, const replica_devices& devices,
                                            reduce_op op, input_arrays& arrays);

/// What a reduction has come to, for each replica, where its own array lay.
/// @param brought What it was made of. @param result Of the host; the placeholders are replaced.
/// @param replicas So many of them are given it. Errors: as `move_arrays`.
[[nodiscard]] task<std::vector<input_arrays>> placed_for(activity& host,
                                                         const replica_devices& devices,
                                                         const input_arrays& brought,
                                                         input_arrays result, size_t replicas);

} // namespace troupe
