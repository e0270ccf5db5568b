// SPDX-License-Identifier: Apache-2.0
// Goal: frames are those of TensorFlow. Method: bytes that the record writer of the Python package
// tensorboard 2.21 made.
#include "actors/recording/tfrecord.hpp"
#include "tests/doctest.hpp"

namespace tfrecord_test {

TEST_SUITE("actors/recording/tfrecord") {
  using namespace troupe;

  TEST_CASE("frames records as tensorboard does") {
    const uint8_t made[]
      = {0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xb0, 0x99, 0x49, 0x0e, 0x6f, 0x6e, 0x65,
         0x01, 0x40, 0x55, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x29, 0x03, 0x98,
         0x07, 0xd8, 0xea, 0x82, 0xa2, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x73, 0x69,
         0xd5, 0x37, 0x00, 0xff, 0x20, 0x74, 0x77, 0x6f, 0x8e, 0x10, 0x79, 0xcf};
    CHECK(tfrecord::frame("one") + tfrecord::frame("")
            + tfrecord::frame(std::string_view{"\0\xff two", 6})
          == std::string(std::begin(made), std::end(made)));
  }

  TEST_CASE("masks the checksum") {
    // The checksum of "123456789" is 0xe3069283.
    const std::string_view digits = "123456789";
    CHECK(tfrecord::masked_checksum(std::as_bytes(std::span{digits}))
          == (0xe3069283 >> 15 | 0xe3069283 << 17) + 0xa282ead8);
  }
}

} // namespace tfrecord_test
