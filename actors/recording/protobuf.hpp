// SPDX-License-Identifier: Apache-2.0
// Messages in the encoding of Protocol Buffers, field by field.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// TensorBoard's files hold a handful of fields of two messages: too little to generate code from
/// schemas for. The caller must know a field's number and its type.
/// Source: https://protobuf.dev/programming-guides/encoding.
class protobuf_message {
public:
  /// An `int64` or `uint64` field.
  protobuf_message& add_integer(uint32_t field, uint64_t value);

  /// A `double` field.
  protobuf_message& add_double(uint32_t field, double value);

  /// A `float` field.
  protobuf_message& add_float(uint32_t field, float value);

  /// A field of text, bytes or an encoded message.
  protobuf_message& add_bytes(uint32_t field, std::string_view bytes);

  /// A packed field of `repeated double`.
  protobuf_message& add_doubles(uint32_t field, std::span<const double> values);

  /// The message so far.
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
  /// How many bytes a field takes: part of its key.
  enum class wire : uint8_t { varint = 0, eight_bytes = 1, counted = 2, four_bytes = 5 };

  void append_key(uint32_t field, wire type);
  void append_varint(uint64_t value);

  std::string bytes_;
};

} // namespace troupe
