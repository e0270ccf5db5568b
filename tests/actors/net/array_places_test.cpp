// SPDX-License-Identifier: Apache-2.0
// Goal: each expected array has one place, which is used once, and others have none. Method:
// places, and beginnings of messages.
#include "actors/net/array_places.hpp"
#include "messages/frame.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/examples.hpp"

#include <vector>

namespace array_places_test {

using namespace troupe;

namespace {

constexpr auto bytes = array_places::bytes_min;
constexpr uint64_t receiver = 5;

std::vector<std::byte> result_of(uint64_t call, size_t array_bytes = bytes) {
  return flatten(
    frame(make_collective_part({.name = "a"}, {.call = call,
                                               .rank = 1,
                                               .stage = collective_stage::result,
                                               .values = {zeros({int64_t(array_bytes / 4)})}}))
      .value());
}

collective_part_key part_of(uint64_t call) {
  return {.call = call, .rank = 1};
}

/// Memory of so many bytes that begins at a multiple of 64.
struct room {
  explicit room(size_t size = bytes) : memory(zeros({int64_t(size / 4) + 2})), size(size) {}

  [[nodiscard]] array_place place(size_t offset = 0) {
    return {{static_cast<std::byte*>(memory.mutable_data()) + offset, size}, memory.owner()};
  }

  tensor memory;
  size_t size;
};

} // namespace

TEST_SUITE("actors/net/array_places") {
  TEST_CASE("a result finds the place where it is expected, once") {
    array_places places;
    room memory;
    CHECK_FALSE(places.expects(receiver));
    places.expect(receiver, part_of(3), memory.place());
    CHECK(places.expects(receiver));
    auto found = places.take(receiver, result_of(3));
    REQUIRE(found);
    CHECK(found->memory.data() == memory.memory.data());
    CHECK(found->memory.size() == bytes);
    CHECK(found->owner == memory.memory.owner());
    CHECK_FALSE(places.take(receiver, result_of(3)));
  }

  TEST_CASE("a message in its own memory is accepted until another one is read to the place") {
    array_places places;
    room memory;
    room elsewhere;
    auto in_place = memory.memory.data();
    CHECK(places.accept(receiver, part_of(3), elsewhere.memory.data())); // nothing is expected
    places.expect(receiver, part_of(3), memory.place());
    REQUIRE(places.take(receiver, result_of(3)));
    CHECK_FALSE(places.accept(receiver, part_of(3), elsewhere.memory.data()));
    CHECK(places.accept(receiver, part_of(3), in_place));
    places.expect(receiver, part_of(4), memory.place());
    CHECK(places.accept(receiver, part_of(4), elsewhere.memory.data()));
    CHECK_FALSE(places.take(receiver, result_of(4)));
  }

  TEST_CASE("an actor that has ended expects nothing") {
    array_places places;
    room memory;
    for (auto actor : {receiver - 1, receiver, receiver + 1})
      places.expect(actor, part_of(3), memory.place());
    places.forget(receiver);
    CHECK(places.expects(receiver - 1));
    CHECK_FALSE(places.expects(receiver));
    CHECK(places.expects(receiver + 1));
  }

  TEST_CASE("results of other calls, for others, and of other lengths find none") {
    array_places places;
    room memory;
    places.expect(receiver, part_of(3), memory.place());
    CHECK_FALSE(places.take(receiver, result_of(4)));
    CHECK_FALSE(places.take(receiver + 1, result_of(3)));
    CHECK_FALSE(places.take(receiver, result_of(3, bytes + 8)));
    CHECK_FALSE(places.take(receiver, {}));
    CHECK(places.take(receiver, result_of(3)));
  }

  TEST_CASE("a call that has ended expects nothing, and others still do") {
    array_places places;
    room memory;
    for (uint64_t call : {2, 3, 4})
      places.expect(receiver, part_of(call), memory.place());
    places.expect(receiver + 1, part_of(3), memory.place());
    places.forget(receiver, 3);
    CHECK_FALSE(places.take(receiver, result_of(3)));
    for (uint64_t call : {2, 4})
      CHECK(places.take(receiver, result_of(call)));
    CHECK(places.take(receiver + 1, result_of(3)));
  }

  TEST_CASE("memory that is short, or not made of whole words, is no place") {
    array_places places;
    for (size_t size : {bytes - 8, bytes + 4}) {
      room memory{size};
      places.expect(receiver, part_of(3), memory.place());
    }
    room memory;
    places.expect(receiver, part_of(3), memory.place(4));
    CHECK_FALSE(places.expects(receiver));
  }
}

} // namespace array_places_test
