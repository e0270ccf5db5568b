// SPDX-License-Identifier: Apache-2.0
// Goal: both twins compute the checksum that other programs compute. Method: the vectors of RFC
// 3720, then each twin against the other for every length and cut of a small array.
#include "kernels/tensor/crc32c.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

namespace crc32c_test {

TEST_SUITE("kernels/tensor/crc32c") {
  using namespace troupe;

  using bytes_32 = std::array<uint8_t, 32>;

  bytes_32 filled(uint8_t value) {
    bytes_32 bytes;
    bytes.fill(value);
    return bytes;
  }

  bytes_32 rising() {
    bytes_32 bytes;
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    return bytes;
  }

  void check_both(std::span<const std::byte> bytes, uint32_t crc) {
    CHECK(reference::crc32c(bytes) == crc);
    CHECK(cpu::crc32c(bytes) == crc);
  }

  TEST_CASE("agrees with the examples of RFC 3720, appendix B.4") {
    const auto zeros = filled(0);
    const auto ones = filled(0xff);
    const auto up = rising();
    auto down = up;
    std::ranges::reverse(down);
    check_both(std::as_bytes(std::span{zeros}), 0x8a9136aa);
    check_both(std::as_bytes(std::span{ones}), 0x62a8ab43);
    check_both(std::as_bytes(std::span{up}), 0x46dd794e);
    check_both(std::as_bytes(std::span{down}), 0x113fdb5c);
    const std::string_view digits = "123456789";
    check_both(std::as_bytes(std::span{digits}), 0xe3069283);
    check_both({}, 0);
  }

  TEST_CASE("goes on where it stopped, at any cut") {
    std::array<uint8_t, 100> numbers{};
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<uint8_t>(i * i + 7 * i);
    const auto bytes = std::as_bytes(std::span{numbers});
    const auto whole = reference::crc32c(bytes);
    for (size_t cut = 0; cut <= bytes.size(); ++cut) {
      CHECK(reference::crc32c(bytes.subspan(cut), cpu::crc32c(bytes.first(cut))) == whole);
      CHECK(cpu::crc32c(bytes.subspan(cut), reference::crc32c(bytes.first(cut))) == whole);
    }
  }
}

} // namespace crc32c_test
