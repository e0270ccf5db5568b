// SPDX-License-Identifier: Apache-2.0
// Goal: the beginning of a result says which part it is, so that its array can be read to where it
// belongs; and the message is the same then. Method: frames cut where their array begins.
#include "kernels/tensor/change.hpp"
#include "messages/collective_message.hpp"
#include "messages/frame.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/examples.hpp"

#include <algorithm>

namespace collective_message_test {

using namespace troupe;

namespace {

constexpr int64_t count = 100;
constexpr size_t array_bytes = count * sizeof(float);

collective_part some_result() {
  return {.call = 7,
          .rank = 2,
          .stage = collective_stage::result,
          .strand = 3,
          .begin = 4096,
          .values = {filled(dtype::f32, {count}, 1.5)}};
}

std::vector<std::byte> frame_of(const collective_part& part) {
  collective_meaning meaning{.kind = collective_kind::all_reduce, .name = "a", .extents = {count}};
  return flatten(frame(make_collective_part(meaning, part)).value());
}

// The frame in two places, as a link reads it.
received_bytes apart(std::span<const std::byte> frame, size_t last_bytes) {
  auto whole = receive(frame.first(frame.size() - last_bytes));
  auto array = receive(frame.last(last_bytes));
  whole.array = array.frame;
  whole.array_owner = array.owner;
  return whole;
}

bool has_beginning(const collective_part& part) {
  auto bytes = frame_of(part);
  return read_part_beginning(receive(bytes).frame).has_value();
}

} // namespace

TEST_SUITE("messages/collective_message") {
  TEST_CASE("the beginning of a result says which part it is, and how long its array") {
    auto bytes = frame_of(some_result());
    auto frame = receive(bytes);
    auto fewest = bytes.size() - array_bytes;
    for (auto size : {fewest, fewest + 1, bytes.size()}) {
      auto found = read_part_beginning(frame.frame.first(size));
      REQUIRE(found);
      CHECK(found->key == collective_part_key{.call = 7, .rank = 2, .strand = 3, .begin = 4096});
      CHECK(found->array_bytes == array_bytes);
    }
  }

  TEST_CASE("a beginning that is too short, or between two words, says nothing") {
    auto bytes = frame_of(some_result());
    auto frame = receive(bytes);
    for (size_t size = 0; size < bytes.size() - array_bytes; ++size)
      CHECK_FALSE(read_part_beginning(frame.frame.first(size)));
    CHECK_FALSE(read_part_beginning(receive(bytes, 3).frame));
  }

  TEST_CASE("other parts and other messages have no such beginning") {
    CHECK(has_beginning(some_result()));
    for (auto stage : {collective_stage::own, collective_stage::partial}) {
      auto part = some_result();
      part.stage = stage;
      CHECK_FALSE(has_beginning(part));
    }
    auto two = some_result();
    two.values.push_back(two.values.front());
    CHECK_FALSE(has_beginning(two));
    auto push = make_push_gradient({}, filled(dtype::f32, {count}, 1));
    CHECK_FALSE(read_part_beginning(receive(flatten(frame(push).value())).frame));
  }

  TEST_CASE("a frame whose array lies apart is the same message, and the same frame again") {
    auto bytes = frame_of(some_result());
    auto received = apart(bytes, array_bytes);
    const auto* array = received.array.data();
    auto message = decode<wire::CollectivePart>(received);
    REQUIRE(message);
    auto part = read_collective_part(*message);
    CHECK(part.begin == 4096);
    REQUIRE(part.values.size() == 1);
    CHECK(part.values[0].data() == array);
    CHECK(std::ranges::equal(part.values[0].values<float>(), std::vector<float>(count, 1.5)));
    CHECK(flatten(frame(*message).value()) == bytes);
  }

  TEST_CASE("a segment table that is not all in front is refused") {
    // 101 segments take 408 bytes of table; 16 are there, and an array of 392.
    std::vector<uint64_t> words(51);
    words[0] = 100;
    auto refused = decode_any(apart(std::as_bytes(std::span{words}), 392));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::malformed);
  }

  TEST_CASE("the last segment alone may lie apart") {
    auto bytes = frame_of(some_result());
    for (size_t last : {array_bytes - 8, array_bytes + 8}) {
      auto refused = decode<wire::CollectivePart>(apart(bytes, last));
      REQUIRE_FALSE(refused);
      CHECK(refused.error()
            == error{errc::malformed, "frame whose last segment is not the array that lies apart"});
    }
  }
}

} // namespace collective_message_test
