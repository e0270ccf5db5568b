// SPDX-License-Identifier: Apache-2.0
// Tells arrays in the host's memory from arrays on devices, and refuses those in the wrong place.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/throw_failure.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

namespace troupe {

/// Whether only a device may look at the elements.
[[nodiscard]] inline bool is_on_device(const tensor& value) {
  return value.device().kind != device_kind::cpu;
}

/// Whether some array of a gradient lies on a device.
[[nodiscard]] inline bool lies_on_device(const gradient& value) {
  const auto* rows = std::get_if<indexed_slices>(&value);
  return rows == nullptr ? is_on_device(std::get<tensor>(value))
                         : is_on_device(rows->indices) || is_on_device(rows->values);
}

/// Whether the owner of a variable takes such an array where it lies, by a message that refers to
/// it. @param place Where the variable lies.
[[nodiscard]] inline bool is_taken_there(const tensor& array, device place) {
  auto is_word_aligned = reinterpret_cast<uintptr_t>(array.data()) % sizeof(uint64_t) == 0;
  return is_floating(array.type()) && array.device() == place && array.is_contiguous()
         && is_word_aligned;
}

/// Refuses a value that is to be sent, or to be looked at, and lies on a device.
/// Errors: throws `failure` with invalid_argument.
inline void check_on_host(const tensor& value) {
  if (is_on_device(value))
    throw_failure(
      errc::invalid_argument,
      "a value of shape {} lies on {}; have the stream copy it to the host first (to_host)",
      to_string(value.extents()), to_string(value.device()));
}

/// Refuses a value on a device with gaps between its elements: only the host could gather them, and
/// it cannot look there. Errors: throws `failure` with invalid_argument.
inline void check_row_major(const tensor& value) {
  if (is_on_device(value) && !value.is_contiguous())
    throw_failure(
      errc::invalid_argument,
      "a value of shape {} lies on {} with gaps between its elements; make it row-major there",
      to_string(value.extents()), to_string(value.device()));
}

/// Refuses components on a device with gaps between their elements. @param components By replica.
/// Errors: throws `failure` with invalid_argument.
inline void check_row_major(std::span<const tensor> components) {
  for (size_t i = 0; i < components.size(); ++i)
    if (is_on_device(components[i]) && !components[i].is_contiguous())
      throw_failure(
        errc::invalid_argument,
        "the value of replica {}, of shape {}, lies on {} with gaps between its elements; "
        "make it row-major there",
        i, to_string(components[i].extents()), to_string(components[i].device()));
}

/// Refuses a gradient, or the operand of a scatter, with an array on a device.
/// Errors: throws `failure` with invalid_argument.
inline void check_on_host(const gradient& value) {
  if (const auto* rows = std::get_if<indexed_slices>(&value)) {
    check_on_host(rows->indices);
    check_on_host(rows->values);
  } else {
    check_on_host(std::get<tensor>(value));
  }
}

/// Refuses components that the host is to combine if one lies on a device.
/// @param components By replica. Errors: throws `failure` with invalid_argument.
inline void check_on_host(std::span<const tensor> components) {
  auto found = std::ranges::find_if(components, is_on_device);
  if (found == components.end()) return;
  throw_failure(
    errc::invalid_argument,
    "the value of replica {} lies on {}, and is to be combined on the host; have the stream "
    "copy it there (to_host), or reduce it by a strategy that computes on GPUs",
    found - components.begin(), to_string(found->device()));
}

} // namespace troupe
