// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine. Like all of `kernels/cuda/*.hpp`, no CUDA header is needed to read it.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstddef>
#include <string>

namespace troupe::cuda {

/// Name, size and compute capability of a GPU.
struct device_properties {
  std::string name;
  int compute_major = 0; ///< 9 of compute capability 9.0.
  int compute_minor = 0;
  int multiprocessors = 0;
  size_t memory_bytes = 0;
};

/// The GPUs that this process may use; 0 where there is no GPU or no driver.
/// Errors: resource, for a driver that is too old for the CUDA runtime that Troupe was built with.
[[nodiscard]] expected<int> device_count();

/// Errors: not_found if there is no such device; the line says how many there are.
[[nodiscard]] expected<device_properties> properties_of(int device_index);

/// Has a device and those that came here before it copy from each other without the host's memory
/// between, where the machine has a way for that. Thread: any.
/// Errors: as CUDA's.
[[nodiscard]] expected<void> join_peers(int device_index);

} // namespace troupe::cuda
