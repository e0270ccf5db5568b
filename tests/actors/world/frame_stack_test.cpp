// SPDX-License-Identifier: Apache-2.0
// Where the frames of coroutines lie.
#include "actors/world/frame_stack.hpp"
#include "actors/world/task.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <utility>

namespace frame_stack_test {

using namespace troupe;

namespace {

/// A stack that is in use on this thread as long as it is there.
struct stack_in_use {
  frame_stack stack;
  frame_stack* outer = std::exchange(frame_stack::current(), &stack);

  ~stack_in_use() { frame_stack::current() = outer; }

  [[nodiscard]] bool holds(const void* frame) const {
    std::less<const void*> before;
    return !before(frame, &stack) && before(frame, &stack + 1);
  }
};

task<int> number(int value) {
  co_return value;
}

task<int> sum_to(int last) {
  if (last == 0) co_return 0;
  auto others = sum_to(last - 1);
  auto sum = co_await others;
  co_return sum + last;
}

} // namespace

TEST_CASE("frames lie on the stack in use, one behind the other, and leave it as it was") {
  stack_in_use use;
  auto* first = frame_stack::allocate(100);
  auto* second = frame_stack::allocate(100);
  CHECK(use.holds(first));
  CHECK(use.holds(second));
  CHECK(reinterpret_cast<uintptr_t>(second) % 16 == 0);
  CHECK(static_cast<std::byte*>(second) >= static_cast<std::byte*>(first) + 100);
  frame_stack::release(second);
  CHECK(frame_stack::allocate(100) == second);
  frame_stack::release(second);
  frame_stack::release(first);
  CHECK(frame_stack::allocate(100) == first);
  frame_stack::release(first);
}

TEST_CASE("a frame that ends before the one above it goes with that one") {
  stack_in_use use;
  auto* below = frame_stack::allocate(40);
  auto* above = frame_stack::allocate(40);
  frame_stack::release(below);
  auto* next = frame_stack::allocate(40);
  CHECK(next != below);
  frame_stack::release(next);
  frame_stack::release(above);
  CHECK(frame_stack::allocate(40) == below);
  frame_stack::release(below);
}

TEST_CASE("a frame that does not fit is on the heap, as all are where no stack is in use") {
  void* elsewhere = nullptr;
  {
    stack_in_use use;
    auto* large = frame_stack::allocate(1 << 20);
    CHECK_FALSE(use.holds(large));
    std::memset(large, 1, 1 << 20);
    auto* small = frame_stack::allocate(40);
    CHECK(use.holds(small));
    frame_stack::release(large);
    frame_stack::release(small);
    frame_stack::current() = nullptr;
    elsewhere = frame_stack::allocate(40);
    CHECK_FALSE(use.holds(elsewhere));
  }
  frame_stack::release(elsewhere);
}

TEST_CASE("coroutines that await each other run on a stack too small for all of them") {
  stack_in_use use;
  auto sum = sum_to(100);
  sum.start();
  CHECK(sum.result() == 5050);
  auto replaced = number(1);
  replaced = number(2); // the first one ends while the second is above it
  replaced.start();
  CHECK(replaced.result() == 2);
}

} // namespace frame_stack_test
