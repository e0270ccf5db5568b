// SPDX-License-Identifier: Apache-2.0
// Goal: each job is run once, and none waits for another while a thread has nothing to do, although
// few threads are woken. Method: threads that take jobs which wait for each other.
#include "actors/world/job_queue.hpp"
#include "tests/doctest.hpp"

#include <caf/resumable.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace job_queue_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

struct job final : caf::resumable {
  explicit job(std::function<void()> what) : work(std::move(what)) {}

  resume_result resume(caf::execution_unit* /*on*/, size_t /*most*/) override {
    work();
    return done;
  }

  void intrusive_ptr_add_ref_impl() override {}

  void intrusive_ptr_release_impl() override {}

  std::function<void()> work;
};

constexpr std::array spins{0us, 50us, 10'000us};

/// Threads that run what is in a queue until they are told to end.
class crew {
public:
  crew(int count, std::chrono::microseconds spin) : queue(spin), end_{[] {}} {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this] {
        for (caf::resumable* next = queue.take(); next != &end_; next = queue.take())
          next->resume(nullptr, 1);
      });
  }

  ~crew() {
    for (size_t i = 0; i < threads_.size(); ++i)
      queue.put(&end_);
    for (auto& thread : threads_)
      thread.join();
  }

  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  job_queue queue;

private:
  job end_;
  std::vector<std::thread> threads_;
};

} // namespace

TEST_SUITE("actors/world/job_queue") {
  TEST_CASE("jobs come in the order in which they were put there") {
    job_queue queue{0us};
    job first{[] {}};
    job second{[] {}};
    CHECK(queue.try_take() == nullptr);
    queue.put(&first);
    queue.put(&second);
    CHECK(queue.take() == &first);
    CHECK(queue.try_take() == &second);
    CHECK(queue.try_take() == nullptr);
  }

  TEST_CASE("each job is run once, whichever thread puts it there") {
    for (auto spin : spins) {
      CAPTURE(spin.count());
      constexpr int putters = 3;
      constexpr int jobs_of_each = 2000;
      std::vector<std::atomic<int>> runs(putters * jobs_of_each);
      std::deque<job> jobs;
      for (auto& count : runs)
        jobs.emplace_back([&count] { ++count; });
      {
        crew four{4, spin};
        std::vector<std::thread> putting;
        for (int i = 0; i < putters; ++i)
          putting.emplace_back([&, i] {
            for (int j = 0; j < jobs_of_each; ++j)
              four.queue.put(&jobs[i * jobs_of_each + j]);
          });
        for (auto& thread : putting)
          thread.join();
      }
      CHECK(std::ranges::all_of(runs, [](const auto& count) { return count == 1; }));
    }
  }

  TEST_CASE(
    "a job that takes long holds up none that came after it, whether it makes them or not") {
    for (auto spin : spins) {
      CAPTURE(spin.count());
      crew four{4, spin};
      for (int i = 0; i < 200; ++i) {
        std::latch all_run{4}; // so a thread that runs one of them waits until there are four
        std::latch all_over{4};
        auto wait_for_all = [&] {
          all_run.arrive_and_wait();
          all_over.count_down();
        };
        job from_outside{wait_for_all};
        std::deque<job> made;
        for (int each = 0; each < 2; ++each)
          made.emplace_back(wait_for_all);
        job maker{[&] {
          for (auto& one : made)
            four.queue.put(&one);
          wait_for_all();
        }};
        four.queue.put(&maker);
        four.queue.put(&from_outside);
        all_over.wait();
      }
    }
  }
}

} // namespace job_queue_test
