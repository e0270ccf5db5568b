// SPDX-License-Identifier: Apache-2.0
// CRC-32C by the processor's own instruction.
#include "kernels/tensor/crc32c.hpp"

#include <cstring>

#if defined(__aarch64__)
#  include <asm/hwcap.h>
#  include <sys/auxv.h>
#endif

namespace troupe::cpu {

#if defined(__x86_64__)

namespace {

[[gnu::target("sse4.2")]] uint32_t with_instruction(std::span<const std::byte> bytes,
                                                    uint32_t before) {
  uint64_t crc = ~before;
  for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc = __builtin_ia32_crc32di(crc, word);
  }
  auto rest = static_cast<uint32_t>(crc);
  for (auto byte : bytes)
    rest = __builtin_ia32_crc32qi(rest, static_cast<uint8_t>(byte));
  return ~rest;
}

} // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  return has_instruction ? with_instruction(bytes, before) : reference::crc32c(bytes, before);
}

#elif defined(__aarch64__)

namespace {

[[gnu::target("+crc")]] uint32_t with_instruction(std::span<const std::byte> bytes,
                                                  uint32_t before) {
  uint32_t crc = ~before;
  for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc = __builtin_aarch64_crc32cx(crc, word);
  }
  for (auto byte : bytes)
    crc = __builtin_aarch64_crc32cb(crc, static_cast<uint8_t>(byte));
  return ~crc;
}

} // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  static const bool has_instruction = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  return has_instruction ? with_instruction(bytes, before) : reference::crc32c(bytes, before);
}

#else

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  return reference::crc32c(bytes, before);
}

#endif

} // namespace troupe::cpu
