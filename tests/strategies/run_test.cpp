// SPDX-License-Identifier: Apache-2.0
// Goal: a function runs on every replica, gets its own of what is distributed, and what it returns
// is put together again. Method: all strategies, both worlds.
#include "tests/strategies/every_strategy.hpp"
#include "tests/strategies/small_job.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("strategies/run") {
  TEST_CASE("each replica knows its index and how many there are") {
    for_every_strategy([](strategy& strategy) {
      auto ids = strategy.run([](replica_context& context) {
        return std::pair{context.replica_id_in_sync_group(), context.num_replicas_in_sync()};
      });
      auto own = strategy.experimental_local_results(ids.first);
      REQUIRE(own.size() == strategy.num_replicas_in_sync());
      for (uint32_t i = 0; i < own.size(); ++i) {
        CHECK(own[i] == i);
        CHECK(ids.second[i] == strategy.num_replicas_in_sync());
      }
    });
  }

  TEST_CASE("a merge_call runs the function of replica 0 once, with everybody's arguments") {
    for_every_strategy([](strategy& strategy) {
      auto results = strategy.run([](replica_context& context) -> task<double> {
        double sum = 0;
        for (int round = 1; round <= 3; ++round) {
          auto add = [](cross_replica_context& cross, distributed_value<double> mine) {
            double total = 0;
            for (auto each : mine.local_results())
              total += each;
            return std::pair{total, cross.num_replicas_in_sync()};
          };
          auto merging = context.merge_call(add, 1.0 * round + context.replica_id_in_sync_group());
          auto [total, count] = co_await merging;
          sum += total + count;
        }
        co_return sum;
      });
      auto n = strategy.num_replicas_in_sync();
      auto expected = 3.0 * n + 6.0 * n + 3.0 * n * (n - 1) / 2;
      for (uint32_t i = 0; i < n; ++i)
        CHECK(results[i] == expected);
    });
  }
}
