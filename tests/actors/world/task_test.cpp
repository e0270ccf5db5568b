// SPDX-License-Identifier: Apache-2.0
// Goal: a task behaves like a function that may stop in the middle. Method: tasks around a gate
// that the test opens by hand.
#include "actors/world/task.hpp"
#include "tests/doctest.hpp"

#include <coroutine>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace task_test {

using namespace troupe;

namespace {

/// A coroutine that awaits it is suspended until the test opens it.
struct gate {
  std::coroutine_handle<> waiter;

  [[nodiscard]] bool await_ready() const { return false; }

  void await_suspend(std::coroutine_handle<> handle) { waiter = handle; }

  void await_resume() const {}

  void open() { std::exchange(waiter, nullptr).resume(); }
};

/// Tells when it is destroyed.
struct witness {
  explicit witness(bool& gone) : gone_(&gone) {}

  witness(witness&& other) noexcept : gone_(std::exchange(other.gone_, nullptr)) {}

  ~witness() {
    if (gone_) *gone_ = true;
  }

private:
  bool* gone_;
};

task<int> give(int value) {
  co_return value;
}

task<int> wait_and_give(gate& gate, int value) {
  co_await gate;
  co_return value;
}

task<void> throw_after(gate& gate) {
  co_await gate;
  throw std::runtime_error{"the stage is on fire"};
}

// ThreadSanitizer takes each resumption for a deeper call, and has room for 65,536. With
// AddressSanitizer GCC makes a deeper call of it, which needs some kilobytes.
#if defined(__SANITIZE_THREAD__)
constexpr int many = 10'000;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int many = 1'000;
#else
constexpr int many = 100'000;
#endif

task<int> sum_of_first(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    auto next = give(1);
    sum += co_await next;
  }
  co_return sum;
}

task<int> depth(int levels, gate& gate) {
  if (levels == 0) {
    co_await gate;
    co_return 0;
  }
  auto deeper = depth(levels - 1, gate);
  auto below = co_await deeper;
  co_return below + 1;
}

task<void> note(std::vector<std::string>& notes, gate& gate) {
  notes.emplace_back("inner begins");
  co_await gate;
  notes.emplace_back("inner ends");
}

task<void> note_around(std::vector<std::string>& notes, gate& gate) {
  notes.emplace_back("outer begins");
  auto inner = note(notes, gate);
  co_await inner;
  notes.emplace_back("outer ends");
}

task<std::string> catch_inner(gate& gate) {
  auto failing = throw_after(gate);
  try {
    co_await failing;
  } catch (const std::runtime_error& caught) {
    co_return caught.what();
  }
  co_return "nothing was thrown";
}

task<void> hold(witness held, gate& gate) {
  auto waiting = wait_and_give(gate, 0);
  co_await waiting;
  static_cast<void>(held);
}

/// The error's text when a task is awaited that cannot be.
task<std::string> refusal_to_await(task<int>& awaited) {
  try {
    static_cast<void>(co_await awaited);
  } catch (const failure& refused) {
    CHECK(refused.reason().code == errc::failed_precondition);
    co_return refused.what();
  }
  co_return "";
}

task<std::unique_ptr<int>> give_pointer() {
  co_return std::make_unique<int>(7);
}

} // namespace

TEST_SUITE("actors/world/task") {
  TEST_CASE("a task does nothing before it is started") {
    std::vector<std::string> notes;
    gate gate;
    auto noting = note(notes, gate);
    CHECK(notes.empty());
    CHECK_FALSE(noting.done());
    noting.start();
    CHECK(notes == std::vector<std::string>{"inner begins"});
    CHECK_FALSE(noting.done());
    gate.open();
    CHECK(noting.done());
  }

  TEST_CASE("a task has the value that the function returned") {
    auto giving = give(42);
    giving.start();
    REQUIRE(giving.done());
    CHECK(giving.result() == 42);
  }

  TEST_CASE("a value need not be copyable") {
    auto giving = give_pointer();
    giving.start();
    CHECK(*giving.result() == 7);
  }

  TEST_CASE("an exception comes out where the result is asked for") {
    gate gate;
    auto throwing = throw_after(gate);
    throwing.start();
    gate.open();
    REQUIRE(throwing.done());
    CHECK_THROWS_WITH_AS(throwing.result(), "the stage is on fire", std::runtime_error);
  }

  TEST_CASE("an exception passes through an awaiting task, which may catch it") {
    gate gate;
    auto catching = catch_inner(gate);
    catching.start();
    gate.open();
    CHECK(catching.result() == "the stage is on fire");
  }

  TEST_CASE("an awaiting task goes on when the inner one ends") {
    std::vector<std::string> notes;
    gate gate;
    auto outer = note_around(notes, gate);
    outer.start();
    CHECK(notes == std::vector<std::string>{"outer begins", "inner begins"});
    gate.open();
    CHECK(notes
          == std::vector<std::string>{"outer begins", "inner begins", "inner ends", "outer ends"});
    CHECK(outer.done());
  }

  TEST_CASE("destroying a suspended task destroys what it holds, through all levels") {
    bool gone = false;
    gate gate;
    {
      auto holding = hold(witness{gone}, gate);
      holding.start();
      CHECK_FALSE(gone);
    }
    CHECK(gone);
  }

  TEST_CASE("a task that never ran is destroyed with its arguments") {
    bool gone = false;
    gate gate;
    { auto holding = hold(witness{gone}, gate); }
    CHECK(gone);
  }

  TEST_CASE("a task that was awaited before, has ended, was moved from or is empty is refused") {
    const std::string refusal
      = "this task cannot be awaited: it was awaited before, was moved from, or is empty as from "
        "'return {}'; call its function again for each co_await";
    auto await = [](task<int>& awaited) {
      auto asking = refusal_to_await(awaited);
      asking.start();
      return asking.result();
    };
    auto once = give(1);
    CHECK(await(once).empty());
    CHECK(await(once) == refusal);
    auto ended = give(1);
    ended.start();
    CHECK(await(ended) == refusal);
    auto moved = std::move(ended);
    CHECK(await(ended) == refusal);
    task<int> empty;
    CHECK(await(empty) == refusal);
  }

  TEST_CASE("a task that another one awaits is refused, and the other one goes on") {
    gate gate;
    auto awaited = wait_and_give(gate, 1);
    auto first = refusal_to_await(awaited);
    first.start();
    auto second = refusal_to_await(awaited);
    second.start();
    REQUIRE(second.done());
    CHECK(second.result().starts_with("this task cannot be awaited"));
    gate.open();
    REQUIRE(first.done());
    CHECK(first.result().empty());
  }

  TEST_CASE("a moved task leaves nothing behind, and an empty one is not done") {
    auto first = give(1);
    auto second = std::move(first);
    task<int> empty;
    CHECK_FALSE(empty.done());
    empty = std::move(second);
    empty.start();
    CHECK(empty.result() == 1);
  }

  TEST_CASE("a task that has ended, was moved from or is empty is not started") {
    const char* refusal = "this task cannot be started: it has ended, was moved from, or is empty";
    task<int> empty;
    CHECK_THROWS_WITH_AS(empty.start(), refusal, failure);
    auto ended = give(1);
    ended.start();
    CHECK_THROWS_WITH_AS(ended.start(), refusal, failure);
    auto moved = std::move(ended);
    CHECK_THROWS_WITH_AS(ended.start(), refusal, failure); // NOLINT(bugprone-use-after-move)
    CHECK(moved.result() == 1);
  }

  TEST_CASE("a task that is not done has no result") {
    const char* refusal
      = "this task has no result yet, or none at all; ask for it when it is done()";
    gate gate;
    auto waiting = wait_and_give(gate, 1);
    CHECK_THROWS_WITH_AS(waiting.result(), refusal, failure);
    waiting.start();
    CHECK_THROWS_WITH_AS(waiting.result(), refusal, failure);
    gate.open();
    CHECK(waiting.result() == 1);
    CHECK_THROWS_WITH_AS(task<void>{}.result(), refusal, failure);
  }

  TEST_CASE("assigning to a task destroys what it was") {
    bool gone = false;
    gate gate;
    auto life = hold(witness{gone}, gate);
    life.start();
    life = task<void>{};
    CHECK(gone);
  }

  TEST_CASE("very many tasks awaited one after the other do not deepen the stack") {
    auto summing = sum_of_first(many);
    summing.start();
    REQUIRE(summing.done());
    CHECK(summing.result() == many);
  }

  TEST_CASE("very many tasks inside each other end without deepening the stack") {
    gate gate;
    auto nested = depth(many, gate);
    nested.start();
    REQUIRE_FALSE(nested.done());
    gate.open();
    REQUIRE(nested.done());
    CHECK(nested.result() == many);
  }
}

} // namespace task_test
