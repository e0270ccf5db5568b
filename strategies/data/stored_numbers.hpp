// SPDX-License-Identifier: Apache-2.0
// Numbers as files hold them: more kinds than tensors have, in either byte order.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace troupe {

/// The type that a number is read as, before it becomes an element. An f32 is read as f32: by way
/// of f64 it would be rounded twice.
template <class Element>
using rounded_first = std::conditional_t<std::is_same_v<Element, double>, double, float>;

/// How the bits of a number are read.
enum class number_kind : uint8_t { floating, integer, natural };

/// How a file stores the numbers of an array.
struct stored_numbers {
  number_kind kind = number_kind::floating;
  uint8_t bytes = 4; ///< Size of one number.
  bool is_big_endian = false;
};

/// The element type that holds such numbers without loss: their own, or the next larger integer.
/// Errors: `unimplemented` for numbers of no supported size, among them naturals of 8 bytes.
[[nodiscard]] expected<dtype> type_for(const stored_numbers& stored);

/// Whether tensors of this type may be made of them: floating types of all (rounded to nearest),
/// integers of integers that they hold without loss. @pre `type_for(stored)` succeeds.
[[nodiscard]] bool can_become(const stored_numbers& stored, dtype type);

/// Converts numbers to the elements of a tensor.
/// @pre `can_become`; the tensor is contiguous and has as many elements as `bytes` has numbers.
void convert(std::span<const std::byte> bytes, const stored_numbers& stored, tensor& to);

} // namespace troupe
