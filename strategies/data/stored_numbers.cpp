// SPDX-License-Identifier: Apache-2.0
// Converts stored numbers, in either byte order, to the elements of tensors.
#include "strategies/data/stored_numbers.hpp"

#include "kernels/tensor/elements.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <fmt/format.h>

namespace troupe {

namespace {

template <class Number>
Number number_at(const std::byte* first, bool is_big_endian) {
  std::array<std::byte, sizeof(Number)> bytes;
  std::copy_n(first, bytes.size(), bytes.data());
  if (is_big_endian != (std::endian::native == std::endian::big)) std::ranges::reverse(bytes);
  return std::bit_cast<Number>(bytes);
}

template <class To, class From>
To converted(From from) {
  if constexpr (std::integral<To> && std::integral<From>)
    return static_cast<To>(from);
  else if constexpr (std::integral<To>)
    return {}; // `can_become` keeps floating numbers away from here.
  else if constexpr (std::integral<From>)
    return narrow<To>(static_cast<rounded_first<To>>(from));
  else
    return narrow<To>(from);
}

template <class From, class To>
void convert_all(std::span<const std::byte> bytes, bool is_big_endian, std::span<To> to) {
  TROUPE_ASSERT(bytes.size() == to.size() * sizeof(From), bytes.size(), to.size());
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = converted<To>(number_at<From>(bytes.data() + i * sizeof(From), is_big_endian));
}

// Calls `visitor` with a number of the stored type.
template <class Visitor>
void visit_stored(const stored_numbers& stored, const Visitor& visitor) {
  const auto pick = [&](auto one_byte, auto two, auto four, auto eight) {
    switch (stored.bytes) {
    case 1:
      return visitor(one_byte);
    case 2:
      return visitor(two);
    case 4:
      return visitor(four);
    default:
      return visitor(eight);
    }
  };
  switch (stored.kind) {
  case number_kind::floating:
    return pick(float16{}, float16{}, float{}, double{});
  case number_kind::integer:
    return pick(int8_t{}, int16_t{}, int32_t{}, int64_t{});
  case number_kind::natural:
    return pick(uint8_t{}, uint16_t{}, uint32_t{}, uint64_t{});
  }
}

// Calls `visitor` with the elements of a tensor of any type.
template <class Visitor>
void visit_elements(tensor& to, const Visitor& visitor) {
  if (to.type() == dtype::i32) return visitor(to.mutable_values<int32_t>());
  if (to.type() == dtype::i64) return visitor(to.mutable_values<int64_t>());
  visit_floating(to.type(), [&](auto zero) { visitor(to.mutable_values<decltype(zero)>()); });
}

} // namespace

expected<dtype> type_for(const stored_numbers& stored) {
  const auto bytes = stored.bytes;
  switch (stored.kind) {
  case number_kind::floating:
    if (bytes == 2) return dtype::f16;
    if (bytes == 4) return dtype::f32;
    if (bytes == 8) return dtype::f64;
    break;
  case number_kind::integer:
    if (bytes == 1 || bytes == 2 || bytes == 4) return dtype::i32;
    if (bytes == 8) return dtype::i64;
    break;
  case number_kind::natural:
    if (bytes == 1 || bytes == 2) return dtype::i32;
    if (bytes == 4) return dtype::i64;
    break;
  }
  return fail(errc::unimplemented, fmt::format("numbers of {} bytes and of this kind have no "
                                               "counterpart among f32, f64, f16, bf16, i32, i64",
                                               bytes));
}

bool can_become(const stored_numbers& stored, dtype type) {
  if (is_floating(type)) return true;
  const auto smallest = type_for(stored);
  TROUPE_ASSERT(smallest.has_value());
  return !is_floating(*smallest) && element_bytes(*smallest) <= element_bytes(type);
}

void convert(std::span<const std::byte> bytes, const stored_numbers& stored, tensor& to) {
  TROUPE_ASSERT(can_become(stored, to.type()), to_string(to.type()));
  visit_stored(stored, [&](auto from) {
    visit_elements(to, [&](auto elements) {
      convert_all<decltype(from)>(bytes, stored.is_big_endian, elements);
    });
  });
}

} // namespace troupe
