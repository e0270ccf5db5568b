// SPDX-License-Identifier: Apache-2.0
// CRC-32C by a table with the remainder of each byte.
#include "kernels/tensor/crc32c.hpp"

#include <array>

namespace troupe::reference {

namespace {

// The polynomial 0x1edc6f41 with its bits reversed, since the lowest bit comes first.
constexpr uint32_t polynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> remainders_of_bytes() {
  std::array<uint32_t, 256> remainders{};
  for (uint32_t byte = 0; byte < remainders.size(); ++byte) {
    auto remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = remainder >> 1 ^ (remainder & 1 ? polynomial : 0);
    remainders[byte] = remainder;
  }
  return remainders;
}

constexpr auto remainders = remainders_of_bytes();

} // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  auto crc = ~before;
  for (auto byte : bytes)
    crc = crc >> 8 ^ remainders[(crc ^ static_cast<uint32_t>(byte)) & 0xff];
  return ~crc;
}

} // namespace troupe::reference
