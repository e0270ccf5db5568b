// SPDX-License-Identifier: Apache-2.0
// Goal: reading ahead changes when elements are read, never which. Method: executors that a test
// turns by hand, one that never runs anything, and threads.
#include "strategies/data/prefetch.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"

#include <atomic>
#include <thread>

namespace prefetch_test {

TEST_SUITE("strategies/data/prefetch") {
  using namespace troupe;
  using test::line_of;
  using test::range;

  // Tasks in the order they were submitted, run when the test says so.
  struct hand_turned {
    std::deque<std::function<void()>> tasks;

    executor submit() {
      return [this](std::function<void()> task) { tasks.push_back(std::move(task)); };
    }

    void turn() {
      while (!tasks.empty()) {
        auto task = std::move(tasks.front());
        tasks.pop_front();
        task();
      }
    }
  };

  // Numbers that remember how many of them were read.
  dataset counted(int64_t count, int& reads) {
    return range(count).map([&reads](element one) {
      ++reads;
      return one;
    });
  }

  TEST_CASE("reads up to so many elements ahead, and no further than the end") {
    int reads = 0;
    hand_turned hand;
    auto iterator = counted(6, reads).prefetch(3, hand.submit()).iterate();
    hand.turn();
    CHECK(reads == 0);
    CHECK(test::drain(iterator, 1) == std::vector<std::string>{"0"});
    CHECK(reads == 1);
    hand.turn();
    CHECK(reads == 4);
    CHECK(test::drain(iterator, 2) == std::vector<std::string>{"1", "2"});
    CHECK(reads == 4);
    hand.turn();
    CHECK(reads == 6);
    CHECK(test::drain(iterator) == std::vector<std::string>{"3", "4", "5"});
    hand.turn();
    CHECK(reads == 6);
  }

  TEST_CASE("the thread that asks reads by itself while the executor is busy") {
    hand_turned never;
    CHECK(line_of(range(5).prefetch(2, never.submit())) == "0 1 2 3 4");
    CHECK(never.tasks.size() == 1);
    never.turn();
  }

  TEST_CASE("an executor that runs tasks at once runs one after the other") {
    int depth = 0;
    int depth_max = 0;
    int tasks = 0;
    const executor at_once = [&](const std::function<void()>& task) {
      ++tasks;
      depth_max = std::max(depth_max, ++depth);
      task();
      --depth;
    };
    int reads = 0;
    auto iterator = counted(100, reads).prefetch(50, at_once).iterate();
    CHECK(test::drain(iterator, 1) == std::vector<std::string>{"0"});
    CHECK(reads == 51);
    CHECK(tasks == 50);
    CHECK(depth_max == 1);
    CHECK(test::drain(iterator).size() == 99);
    CHECK(tasks == 99);
    CHECK(line_of(range(9).prefetch(2, at_once).batch(2).prefetch(3, at_once))
          == line_of(range(9).batch(2)));
  }

  TEST_CASE("an executor that throws is as one that is busy, and is asked again") {
    int asked = 0;
    hand_turned hand;
    const executor refusing = [&](std::function<void()> task) {
      if (++asked != 3) throw std::runtime_error{"no thread"};
      hand.tasks.push_back(std::move(task));
    };
    int reads = 0;
    auto iterator = counted(6, reads).prefetch(2, refusing).iterate();
    CHECK(test::drain(iterator, 3) == std::vector<std::string>{"0", "1", "2"});
    CHECK(asked == 3);
    hand.turn(); // reads an element, and is refused the thread for the next
    CHECK(reads == 4);
    CHECK(asked == 4);
    CHECK(test::drain(iterator) == std::vector<std::string>{"3", "4", "5"});
    CHECK(reads == 6);
  }

  TEST_CASE("drops what it has read when the iterator goes elsewhere") {
    hand_turned hand;
    const auto source = range(9).prefetch(4, hand.submit());
    auto iterator = source.iterate();
    (void)test::drain(iterator, 2);
    hand.turn();
    REQUIRE(iterator.restore(test::place(7, 9)));
    CHECK(test::drain(iterator) == std::vector<std::string>{"7", "8"});
    CHECK(line_of(range(3).prefetch(2, hand.submit()).repeat(2)) == "0 1 2 0 1 2");
  }

  TEST_CASE("a task that comes after the iterator has gone does nothing") {
    int reads = 0;
    hand_turned hand;
    {
      auto iterator = counted(6, reads).prefetch(3, hand.submit()).iterate();
      (void)iterator.next();
    }
    hand.turn();
    CHECK(reads == 1);
  }

  TEST_CASE("a reader that throws gives an error, whichever thread it reads for") {
    hand_turned hand;
    const dataset source{3, []() -> element_reader {
                           return [](uint64_t, uint64_t index) -> expected<element> {
                             if (index < 2) throw std::bad_alloc{};
                             return element{{test::numbers(7)}, {}};
                           };
                         }};
    const auto line = std::string{"dataset: a reader threw: "} + std::bad_alloc{}.what();
    auto iterator = source.prefetch(3, hand.submit()).iterate();
    CHECK(test::drain(iterator, 1) == std::vector<std::string>{line});
    hand.turn();
    CHECK(test::drain(iterator, 1) == std::vector<std::string>{line});
    CHECK(iterator.next().has_value());
    CHECK(source.iterate().next().error() == error{errc::user_code, line});
  }

  TEST_CASE("hands errors on where they belong") {
    hand_turned hand;
    const auto source = range(3)
                          .map([](element one) {
                            if (test::text_of(one) == "1") throw std::runtime_error{"bad"};
                            return one;
                          })
                          .prefetch(3, hand.submit());
    auto iterator = source.iterate();
    (void)iterator.next();
    hand.turn();
    CHECK(test::drain(iterator) == std::vector<std::string>{"map: the function threw: bad", "2"});
  }

  TEST_CASE("is nothing without an executor or a count") {
    hand_turned hand;
    CHECK(line_of(range(3).prefetch(2)) == "0 1 2");
    CHECK(line_of(range(3).prefetch(0, hand.submit())) == "0 1 2");
    CHECK(hand.tasks.empty());
  }

  TEST_CASE("gives the same elements with threads") {
    // One thread per task: as busy as it gets.
    std::atomic<int> running = 0;
    executor threads = [&running](std::function<void()> task) {
      ++running;
      std::thread{[&running, task = std::move(task)] {
        task();
        --running;
      }}.detach();
    };
    const auto source = range(50).shuffle(10, 1);
    const auto plain = line_of(source.batch(3).repeat(4));
    for (int round = 0; round < 20; ++round)
      CHECK(line_of(source.prefetch(4, threads).batch(3).prefetch(2, threads).repeat(4)) == plain);
    while (running > 0)
      std::this_thread::yield();
  }
}

} // namespace prefetch_test
