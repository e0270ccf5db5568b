// SPDX-License-Identifier: Apache-2.0
// Goal: headers come back as they went, and nothing else is taken for one.
#include "actors/net/frame_header.hpp"
#include "tests/doctest.hpp"

namespace frame_header_test {

using namespace troupe;

namespace {

constexpr frame_limits limits{
  .message_bytes_max = 4096, .part_bytes_max = 1024, .hello_bytes_max = 256};

errc refusal(const frame_header& header) {
  auto read = read_frame_header(write_frame_header(header), limits);
  return read ? errc::none : read.error().code;
}

frame_header parcel_of(uint64_t bytes) {
  return {.kind = frame_kind::parcel, .content = content_code::message, .body_bytes = bytes};
}

frame_header opening_of(uint64_t part, uint64_t total) {
  return {.kind = frame_kind::opening,
          .content = content_code::message,
          .body_bytes = part,
          .total_bytes = total};
}

} // namespace

TEST_SUITE("actors/net/frame_header") {
  TEST_CASE("a header keeps its fields, and has the bytes that it always had") {
    frame_header header{.kind = frame_kind::opening,
                        .content = content_code::message,
                        .lane = lane::bulk,
                        .detail = 7,
                        .body_bytes = 8,
                        .total_bytes = 16,
                        .from = {{1, 2}, 3},
                        .to = 4,
                        .id = 5};
    auto block = write_frame_header(header);
    CHECK(*read_frame_header(block, limits) == header);
    std::string hex;
    for (auto byte : block)
      for (int digit : {static_cast<int>(byte) >> 4, static_cast<int>(byte) & 15})
        hex += "0123456789abcdef"[digit];
    CHECK(hex
          == "54525031040101070800000000000000100000000000000001000000020000000300000000000000"
             "04000000000000000500000000000000");
  }

  TEST_CASE("a peer that does not begin with the magic bytes is no node") {
    auto block = write_frame_header({});
    block[0] = std::byte{'G'};
    auto read = read_frame_header(block, limits);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == errc::malformed);
    CHECK(read.error().message.find("no node of Troupe") != std::string::npos);
  }

  TEST_CASE("unknown kinds, contents and lanes are malformed") {
    for (size_t field : {4, 5, 6}) {
      auto block = write_frame_header(parcel_of(8));
      block[field] = std::byte{200};
      CHECK(read_frame_header(block, limits).error().code == errc::malformed);
    }
    auto block = write_frame_header({});
    block[4] = std::byte{0};
    CHECK(read_frame_header(block, limits).error().code == errc::malformed);
  }

  TEST_CASE("no frame is longer than its kind allows") {
    CHECK(refusal(parcel_of(4096)) == errc::none);
    CHECK(refusal(parcel_of(4104)) == errc::limit_exceeded);
    CHECK(refusal({.kind = frame_kind::hello, .body_bytes = 256}) == errc::none);
    CHECK(refusal({.kind = frame_kind::hello, .body_bytes = 264}) == errc::limit_exceeded);
    CHECK(refusal({.kind = frame_kind::heartbeat, .body_bytes = 8}) == errc::limit_exceeded);
    CHECK(refusal({.kind = frame_kind::recalled, .body_bytes = 8}) == errc::limit_exceeded);
    CHECK(refusal(opening_of(1024, 4096)) == errc::none);
    CHECK(refusal(opening_of(1032, 4096)) == errc::limit_exceeded);
    CHECK(refusal(opening_of(1024, UINT64_MAX - 7)) == errc::limit_exceeded);
  }

  TEST_CASE("sizes are whole words, and those of an opening make sense together") {
    CHECK(refusal(parcel_of(12)) == errc::malformed);
    CHECK(refusal(opening_of(8, 12)) == errc::malformed);
    CHECK(refusal(opening_of(8, 8)) == errc::malformed);
    CHECK(refusal(opening_of(16, 8)) == errc::malformed);
    CHECK(refusal(opening_of(0, 8)) == errc::malformed);
    auto parcel = parcel_of(8);
    parcel.total_bytes = 16;
    CHECK(refusal(parcel) == errc::malformed);
  }

  TEST_CASE("only what is for actors has a content") {
    CHECK(refusal({.kind = frame_kind::heartbeat, .content = content_code::message})
          == errc::malformed);
  }
}

} // namespace frame_header_test
