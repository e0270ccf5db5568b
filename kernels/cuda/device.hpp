// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine. Like all of `kernels/cuda/*.hpp`, no CUDA header is needed to read it.
#pragma once

#include "messages/errors/errc.hpp"

#include <string>

namespace troupe::cuda {

/// The GPUs that this process may use; 0 where there is no GPU or no driver.
/// Errors: resource, for a driver that is too old for the CUDA runtime that Troupe was built with.
[[nodiscard]] expected<int> device_count();

/// The name that the driver gives a GPU: "NVIDIA H200".
/// Errors: not_found if there is no such device; the line says how many there are.
[[nodiscard]] expected<std::string> device_name(int device_index);

/// Has a device and those that came here before it copy from each other without the host's memory
/// between, where the machine has a way for that. Thread: any.
/// Errors: as CUDA's.
[[nodiscard]] expected<void> join_peers(int device_index);

} // namespace troupe::cuda
