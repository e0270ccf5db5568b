// SPDX-License-Identifier: Apache-2.0
// Goal: replicas come out of the queue in the order of their moments. Method: an ordered set beside
// it, over moments of many kinds.
#include "kernels/tensor/random.hpp"
#include "simulation/distributions/distribution.hpp"
#include "simulation/moment_queue.hpp"
#include "simulation/step_book.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace moment_queue_test {

using namespace troupe;

namespace {

constexpr uint32_t replicas = 60;

/// A queue, and what it has to hold.
class checked_queue {
public:
  void push(job_time due, uint32_t replica) {
    queue_.push(due, replica);
    all_.insert({due, replica});
  }

  [[nodiscard]] bool empty() {
    CHECK(queue_.empty() == all_.empty());
    return all_.empty();
  }

  // All that are due next, in the order of replicas.
  std::vector<uint32_t> take_next() {
    auto due = all_.begin()->first;
    CHECK(queue_.next() == due);
    std::vector<uint32_t> taken;
    queue_.take_next(taken);
    std::ranges::sort(taken);
    std::vector<uint32_t> expected;
    while (!all_.empty() && all_.begin()->first == due) {
      expected.push_back(all_.begin()->second);
      all_.erase(all_.begin());
    }
    CHECK(taken == expected);
    now = due;
    return taken;
  }

  void clear() {
    queue_.clear();
    all_.clear();
  }

  job_time now{0};

private:
  moment_queue queue_{replicas};
  std::set<std::pair<job_time, uint32_t>> all_;
};

} // namespace

TEST_SUITE("simulation/moment_queue") {
  TEST_CASE("replicas come in the order of their moments, whatever the distribution") {
    for (const char* text :
         {"exponential(1)", "pareto(0.001, 0.2)", "two_point(0.1, 1000)", "0", "3",
          "mixture(0.5: 1, 0.3: 1e-9, 0.2: 1e8)", "two_point(0.3, 0)", "lognormal(1, 3)"}) {
      INFO(text);
      auto times = distribution::parse(text).value().times(1);
      checked_queue queue;
      uint64_t iteration = 0;
      for (uint32_t replica = 0; replica < replicas; ++replica)
        queue.push(times(replica, iteration), replica);
      for (int turn = 0; turn < 500 && !queue.empty(); ++turn) {
        ++iteration;
        for (auto replica : queue.take_next())
          queue.push(later(queue.now, times(replica, iteration)), replica);
      }
    }
  }

  TEST_CASE("moments that come in before those that are open have their place among them") {
    random_stream stream{random_key{2, "moments"}};
    checked_queue queue;
    for (int round = 0; round < 50; ++round) {
      for (uint32_t replica = 0; replica < 3; ++replica) // far apart: a wide bucket
        queue.push(queue.now + job_time{1'000'000 * (replica + 1)}, replica);
      static_cast<void>(queue.take_next());
      for (uint32_t replica = 3; replica < replicas; ++replica)
        queue.push(queue.now + job_time{static_cast<int64_t>(stream.below(100))}, replica);
      while (!queue.empty())
        static_cast<void>(queue.take_next());
    }
  }

  TEST_CASE("a queue runs empty, and is filled again") {
    random_stream stream{random_key{1, "moments"}};
    checked_queue queue;
    for (int round = 0; round < 50; ++round) {
      auto count = 1 + stream.below(replicas - 1);
      for (uint32_t replica = 0; replica < count; ++replica)
        queue.push(queue.now + job_time{static_cast<int64_t>(stream.below(1000))}, replica);
      while (!queue.empty() && stream.below(60) > 0)
        static_cast<void>(queue.take_next());
      if (!queue.empty()) queue.clear();
      CHECK(queue.empty());
    }
  }

  TEST_CASE("the first moment and the end of time have a place") {
    checked_queue queue;
    queue.push(job_time{0}, 0);
    for (uint32_t replica = 1; replica < 5; ++replica)
      queue.push(later(time_max, job_time{1}) - job_time{replica % 2}, replica);
    while (!queue.empty())
      static_cast<void>(queue.take_next());
    CHECK(queue.now > time_max);
  }
}

} // namespace moment_queue_test
