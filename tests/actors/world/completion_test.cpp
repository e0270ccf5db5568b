// SPDX-License-Identifier: Apache-2.0
// Goal: an outcome is what was told first, and a wait for one that never comes has an end.
// Method: completions that are told from the world and from other threads.
#include "actors/world/completion.hpp"
#include "tests/doctest.hpp"

#include <string>
#include <thread>

namespace completion_test {

using namespace troupe;
using namespace std::chrono_literals;

TEST_SUITE("actors/world/completion") {
  TEST_CASE("the first outcome counts, for all copies") {
    auto world = world::virtual_time();
    completion<std::string> done;
    auto copy = done;
    copy("first");
    done("second");
    done(fail(errc::unavailable, "third"));
    CHECK(done.wait(world) == "first");
    CHECK(copy.wait(world) == "first");
  }

  TEST_CASE("an error is an outcome, but none to peek at") {
    auto world = world::virtual_time();
    completion<int> done;
    CHECK(!done.peek());
    done(fail(errc::unavailable, "is gone"));
    CHECK(!done.peek());
    auto told = done.wait(world);
    REQUIRE(!told);
    CHECK(told.error() == error{errc::unavailable, "is gone"});
  }

  TEST_CASE("an outcome is waited for until it is told by another thread") {
    auto world = world::threads({.threads = 1});
    completion<int> done;
    std::thread teller{[done] { done(7); }};
    CHECK(done.wait(world) == 7);
    CHECK(done.peek() == 7);
    teller.join();
  }

  TEST_CASE("a wait for an outcome that is never told ends in time") {
    auto world = world::virtual_time();
    completion<void> done;
    CHECK(!done.comes(world, 1s));
    auto told = done.wait(world);
    REQUIRE(!told);
    CHECK(told.error().code == errc::stalled);
    done({});
    CHECK(done.comes(world, 1s));
  }
}

} // namespace completion_test
