// SPDX-License-Identifier: Apache-2.0
// The checksums and frames of records.
#include "actors/recording/tfrecord.hpp"

#include "kernels/tensor/crc32c.hpp"

#include <bit>

namespace troupe::tfrecord {

namespace {

static_assert(std::endian::native == std::endian::little, "frames hold little-endian numbers");

template <class Number>
void append(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

} // namespace

uint32_t masked_checksum(std::span<const std::byte> bytes) {
  constexpr uint32_t constant = 0xa282ead8;
  return std::rotr(cpu::crc32c(bytes), 15) + constant;
}

std::string frame(std::string_view record) {
  std::string text;
  text.reserve(header_bytes + record.size() + footer_bytes);
  append(text, uint64_t{record.size()});
  append(text, masked_checksum(std::as_bytes(std::span{text})));
  text += record;
  append(text, masked_checksum(std::as_bytes(std::span{record})));
  return text;
}

} // namespace troupe::tfrecord
