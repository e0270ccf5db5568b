// SPDX-License-Identifier: Apache-2.0
// Keys, varints and little-endian numbers.
#include "actors/recording/protobuf.hpp"

#include <bit>

namespace troupe {

namespace {

static_assert(std::endian::native == std::endian::little, "messages hold little-endian numbers");

std::string_view bytes_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace

protobuf_message& protobuf_message::add_integer(uint32_t field, uint64_t value) {
  append_key(field, wire::varint);
  append_varint(value);
  return *this;
}

protobuf_message& protobuf_message::add_double(uint32_t field, double value) {
  append_key(field, wire::eight_bytes);
  bytes_ += bytes_of(std::as_bytes(std::span{&value, 1}));
  return *this;
}

protobuf_message& protobuf_message::add_float(uint32_t field, float value) {
  append_key(field, wire::four_bytes);
  bytes_ += bytes_of(std::as_bytes(std::span{&value, 1}));
  return *this;
}

protobuf_message& protobuf_message::add_bytes(uint32_t field, std::string_view bytes) {
  append_key(field, wire::counted);
  append_varint(bytes.size());
  bytes_ += bytes;
  return *this;
}

protobuf_message& protobuf_message::add_doubles(uint32_t field, std::span<const double> values) {
  return add_bytes(field, bytes_of(std::as_bytes(values)));
}

void protobuf_message::append_key(uint32_t field, wire type) {
  append_varint(field << 3 | static_cast<uint32_t>(type));
}

// Seven bits at a time, the lowest first; the eighth says that there are more.
void protobuf_message::append_varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

} // namespace troupe
