// SPDX-License-Identifier: Apache-2.0
// Adds up the rows of sparse gradients that lie on a GPU.
#pragma once

#include "actors/world/task.hpp"
#include "kernels/tensor/tensor.hpp"

#include <vector>

namespace troupe {

class activity;
class replica_devices;

/// The gradients that replicas bring for one variable, and its form.
struct replica_rows {
  std::vector<gradient> components; ///< By replica; replaced by one, if a device combines them.
  dtype type = dtype::f32;          ///< The variable's dtype.
  shape extents;                    ///< The variable's extents.
};

/// Has a device add up the rows of each index, for each of the variables, and bring the sums to the
/// host as one set of rows. An owner that added all rows would compute the same bits.
/// Rows that do not fit their variable, or lie in the host's memory, are left as they are.
/// @param rows Lives until this is over. Row numbers lie in the host's memory.
/// Cost: one wait, and a sort of the row numbers on a computing thread. Errors: as `move_arrays`.
[[nodiscard]] task<void> combine_rows_on_devices(activity& host, const replica_devices& devices,
                                                 std::vector<replica_rows>& rows);

} // namespace troupe
