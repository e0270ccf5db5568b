// SPDX-License-Identifier: Apache-2.0
// The arrays that replicas bring to a reduction, and how arrays on devices are moved and combined.
#pragma once

#include "actors/world/task.hpp"
#include "kernels/tensor/tensor.hpp"
#include "strategies/reduce/cross_device_ops.hpp"
#include "strategies/values/leaves.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe {

class activity;
class replica_devices;

/// How arrays of replicas become one. An array that is one for all stays as it is, if the host
/// lets it.
enum class array_kind : uint8_t { dense, row_numbers, row_values, one_for_all };

/// The arrays that replicas bring to one place of a nest.
struct array_group {
  array_kind kind = array_kind::dense;
  std::vector<tensor> parts;   ///< By replica; one, if it is the same for all.
  std::vector<device> devices; ///< Where each part lay when it was brought.
  size_t axis = 0;             ///< The axis along which rows are laid behind each other.
  /// The result, if a device has combined the parts. Then the parts are placeholders, and so is the
  /// result of the host.
  std::optional<tensor> outcome{};

  /// Whether some part lay on a device.
  [[nodiscard]] bool was_on_device() const;
};

/// All arrays of some leaves, so that each device is asked once for all of them. The arrays are
/// taken out of the leaves. Arrays on devices are combined there or copied to the host, and put
/// back. Then the leaves are reduced as any others.
struct input_arrays {
  std::vector<array_group> groups; ///< In the order of the leaves.
  /// Whether all replicas bring the same number, and one number for each row; else refused later.
  bool is_even = true;

  /// Whether some arrays lie on devices; false for values that are refused anyway.
  [[nodiscard]] bool is_on_devices() const;
};

/// The arrays of a gradient: one if it is dense, numbers and rows if it is sparse.
[[nodiscard]] std::vector<tensor*> arrays_in(gradient& value);

/// The arrays of several gradients.
[[nodiscard]] std::vector<tensor*> arrays_in(std::vector<gradient>& gradients);

/// The arrays in leaves, in their order; numbers have none.
[[nodiscard]] input_arrays arrays_of(const std::vector<leaf_group>& leaves);

/// The arrays in one value's leaves.
[[nodiscard]] input_arrays arrays_of(const std::vector<leaf>& leaves);

/// Puts arrays back into leaves. @pre `arrays` are the arrays of these leaves, and even.
void put_back(std::vector<leaf_group>& leaves, const input_arrays& arrays);
void put_back(std::vector<leaf>& leaves, const input_arrays& arrays);

/// An array that is wanted elsewhere.
struct array_move {
  tensor* array; ///< Replaced by its copy there. Lives until the move is made.
  device to;
};

/// Copies arrays to where they are wanted; on the host, into pinned memory. Arrays that are there
/// already stay as they are. An array that is wanted in one place several times is copied once.
/// @param host Its actor waits. @param devices The devices that may be asked.
/// Errors: throws `failure`: invalid_argument for an array on a device that is not row-major, or
/// where no device of the strategy can be asked; as `activity::offload_to`.
/// Cost: a wait for each device.
[[nodiscard]] task<void> move_arrays(activity& host, const replica_devices& devices,
                                     std::vector<array_move> moves);

/// Copies arrays to the host's memory. Errors and cost: as `move_arrays`.
[[nodiscard]] task<void> bring_to_host(activity& host, const replica_devices& devices,
                                       std::vector<tensor*> arrays);

/// Has devices combine the groups that have a part on a device. Floating arrays are added in the
/// order of replicas, with the bits of a host's sum. Rows of any dtype are laid behind each other.
/// The parts are brought together on the device of the first part that lies on one. Parts that are
/// not alike, empty parts, and arrays of integers are left as they are.
/// @param arrays Lives until this is over. Errors: as `move_arrays`.
[[nodiscard]] task<void> combine_on_devices(activity& host, const replica_devices& devices,
                                            reduce_op op, input_arrays& arrays);

/// The result of a reduction, for each replica, where its own array lay.
/// @param inputs The arrays that were reduced. @param result The host's result; its placeholders
/// are replaced. @param replicas The number of replicas that get it. Errors: as `move_arrays`.
[[nodiscard]] task<std::vector<input_arrays>> placed_for(activity& host,
                                                         const replica_devices& devices,
                                                         const input_arrays& inputs,
                                                         input_arrays result, size_t replicas);

} // namespace troupe
