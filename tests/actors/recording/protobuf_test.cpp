// SPDX-License-Identifier: Apache-2.0
// Goal: fields are encoded as Protocol Buffers encode them. Method: the examples of the encoding's
// own description, and bytes that the Python package protobuf made.
#include "actors/recording/protobuf.hpp"
#include "tests/doctest.hpp"

namespace protobuf_test {

TEST_SUITE("actors/recording/protobuf") {
  using namespace troupe;
  using namespace std::string_literals;

  TEST_CASE("encodes integers in as many bytes as they need") {
    CHECK(protobuf_message{}.add_integer(1, 150).bytes() == "\x08\x96\x01");
    CHECK(protobuf_message{}.add_integer(1, 0).bytes() == "\x08\0"s);
    CHECK(protobuf_message{}.add_integer(1, 127).bytes() == "\x08\x7f");
    CHECK(protobuf_message{}.add_integer(16, 1).bytes() == "\x80\x01\x01");
    CHECK(protobuf_message{}.add_integer(2, ~uint64_t{0}).bytes()
          == "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  }

  TEST_CASE("encodes texts, messages and numbers") {
    CHECK(protobuf_message{}.add_bytes(2, "testing").bytes() == "\x12\x07testing");
    CHECK(protobuf_message{}.add_bytes(3, protobuf_message{}.add_integer(1, 150).bytes()).bytes()
          == "\x1a\x03\x08\x96\x01");
    CHECK(protobuf_message{}.add_double(1, 1.5).bytes() == "\x09\0\0\0\0\0\0\xf8\x3f"s);
    CHECK(protobuf_message{}.add_float(2, -2).bytes() == "\x15\0\0\0\xc0"s);
    const double values[] = {1.5, 0};
    CHECK(protobuf_message{}.add_doubles(6, values).bytes()
          == "\x32\x10\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\0\0"s);
    CHECK(protobuf_message{}.add_bytes(1, "").add_integer(2, 1).bytes() == "\x0a\0\x10\x01"s);
  }
}

} // namespace protobuf_test
