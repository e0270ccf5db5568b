// SPDX-License-Identifier: Apache-2.0
// Goal: closures go out in order, none is lost, and one error stops all. Method: numbers, and no
// actors.
#include "actors/coordinator/closure_queue.hpp"
#include "tests/doctest.hpp"

namespace closure_queue_test {

using namespace troupe;

namespace {

const error broken{errc::user_code, "broken"};
const error broken_too{errc::user_code, "broken, too"};

closure_queue queue_of(uint64_t count) {
  closure_queue queue{10};
  for (uint64_t i = 1; i <= count; ++i)
    CHECK(queue.put(i));
  return queue;
}

} // namespace

TEST_SUITE("actors/coordinator/closure_queue") {
  TEST_CASE("closures go out in the order in which they came") {
    auto queue = queue_of(3);
    CHECK(queue.take() == 1);
    CHECK(queue.take() == 2);
    CHECK(queue.take() == 3);
    CHECK(queue.take() == std::nullopt);
  }

  TEST_CASE("it is full when as many are queued as it has places, whatever is in flight") {
    closure_queue queue{2};
    CHECK(queue.put(1));
    CHECK_FALSE(queue.is_full());
    CHECK(queue.put(2));
    CHECK(queue.is_full());
    CHECK(queue.take() == 1);
    CHECK_FALSE(queue.is_full());
  }

  TEST_CASE("it is idle when nothing is queued or in flight") {
    auto queue = queue_of(1);
    CHECK_FALSE(queue.is_idle());
    CHECK(queue.take() == 1);
    CHECK_FALSE(queue.is_idle());
    queue.finish(1);
    CHECK(queue.is_idle());
  }

  TEST_CASE("a closure that is put back goes out next, even if the queue is full") {
    closure_queue queue{1};
    CHECK(queue.put(1));
    CHECK(queue.take() == 1);
    CHECK(queue.put(2));
    CHECK(queue.put_back(1));
    CHECK(queue.in_flight().empty());
    CHECK(queue.take() == 1);
    CHECK(queue.take() == 2);
  }

  TEST_CASE("an error cancels what is queued, and nothing goes out until it is taken") {
    auto queue = queue_of(4);
    CHECK(queue.take() == 1);
    CHECK(queue.take() == 2);
    CHECK(queue.fail(1, broken) == std::vector<uint64_t>{3, 4});
    CHECK(queue.has_failed());
    CHECK(queue.in_flight() == std::set<uint64_t>{2});
    CHECK_FALSE(queue.put(5));
    CHECK(queue.take() == std::nullopt);
    CHECK(queue.take_error() == std::nullopt); // 2 is in flight
    queue.finish(2);
    CHECK(queue.take_error() == broken);
    CHECK(queue.take_error() == std::nullopt);
    CHECK(queue.put(6));
    CHECK(queue.take() == 6);
  }

  TEST_CASE("the first of several errors is kept") {
    auto queue = queue_of(2);
    CHECK(queue.take() == 1);
    CHECK(queue.take() == 2);
    CHECK(queue.fail(2, broken).empty());
    CHECK(queue.fail(1, broken_too).empty());
    CHECK(queue.take_error() == broken);
    CHECK(queue.take_error() == std::nullopt);
  }

  TEST_CASE("a closure that would be put back after an error is cancelled") {
    auto queue = queue_of(2);
    CHECK(queue.take() == 1);
    CHECK(queue.take() == 2);
    CHECK(queue.fail(1, broken).empty());
    CHECK_FALSE(queue.put_back(2));
    CHECK(queue.is_idle());
    CHECK(queue.take_error() == broken);
  }

  TEST_CASE("at the end queued closures are cancelled, and those in flight stay so") {
    auto queue = queue_of(3);
    CHECK(queue.take() == 1);
    CHECK(queue.cancel_queued() == std::vector<uint64_t>{2, 3});
    CHECK(queue.in_flight() == std::set<uint64_t>{1});
  }
}

} // namespace closure_queue_test
