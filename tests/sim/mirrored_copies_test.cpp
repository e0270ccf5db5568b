// SPDX-License-Identifier: Apache-2.0
// Goal: whatever order replicas come in, all copies of a mirrored variable are the same to the last
// bit. Method: drawn sequences of changes under drawn interleavings, copies compared after each
// run.
#include "kernels/tensor/random.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"

#include <cstring>

namespace mirrored_copies_test {

using namespace troupe;
using namespace troupe::test;

namespace {

// One replica's part of a run: the same calls as all others, each with its own numbers, and some
// computing between them.
task<void> change_together(replica_context& context, variable target, uint64_t seed,
                           uint64_t round) {
  random_stream shared{random_key{seed, "shared", 0, round}};
  random_stream own{random_key{seed, "own", context.replica_id_in_sync_group(), round}};
  for (uint64_t calls = 1 + (seed + round) % 5; calls > 0; --calls) {
    auto computing = context.compute([](std::stop_token) { return 0; });
    co_await computing;
    auto value = make_tensor({2}, {static_cast<float>(own.normal()), 0.1F});
    if (shared.uniform() < 0.5) {
      auto adding = context.assign_add(target, value);
      static_cast<void>(co_await adding);
    } else {
      auto reducing = context.all_reduce(reduce_op::mean, value);
      auto mean = co_await reducing;
      auto assigning = context.assign(target, mean);
      static_cast<void>(co_await assigning);
    }
  }
}

bool are_copies_equal(strategy& of, const variable& target) {
  auto read = of.run([target](replica_context& context) -> task<tensor> {
    auto reading = context.read(target);
    auto value = co_await reading;
    co_return value;
  });
  auto copies = of.experimental_local_results(read);
  return std::ranges::all_of(copies, [&](const tensor& copy) {
    return copy.bytes() == copies[0].bytes()
           && std::memcmp(copy.data(), copies[0].data(), copy.bytes()) == 0;
  });
}

} // namespace

TEST_SUITE("sim/mirrored_copies") {
  TEST_CASE("copies of a mirrored variable stay equal to the last bit under 100 interleavings") {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      CAPTURE(seed);
      auto world = world::virtual_time({.seed = seed});
      mirrored_strategy strategy{world, {cpu_devices(2 + seed % 4)}};
      auto target = strategy.make_variable("v", make_tensor({2}, {1, 2}),
                                           {.aggregation = variable_aggregation::mean});
      for (uint64_t round = 0; round < 4; ++round) {
        strategy.run([=](replica_context& context) -> task<void> {
          auto changing = change_together(context, target, seed, round);
          co_await changing;
        });
        REQUIRE(are_copies_equal(strategy, target));
      }
    }
  }
}

} // namespace mirrored_copies_test
