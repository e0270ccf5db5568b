// SPDX-License-Identifier: Apache-2.0
// The smallest step there is: two replicas, one variable, one agreement.
#include "strategies/kinds/mirrored_strategy.hpp"

#include <cstdio>

using namespace troupe;

int main() {
  auto world = world::threads();
  mirrored_strategy strategy{world, {.devices = {"cpu:0", "cpu:1"}}};
  auto greetings
    = strategy.make_variable("greetings", zeros({}), {.aggregation = variable_aggregation::sum});

  auto sums = strategy.run([=](replica_context& context) -> task<double> {
    auto own = 1.0 + context.replica_id_in_sync_group();
    auto adding = context.assign_add(greetings, own);
    co_await adding;
    auto reducing = context.all_reduce(reduce_op::sum, own);
    auto sum = co_await reducing;
    co_return sum;
  });

  std::printf("the replicas agree on %g and %g; the variable is %g\n", sums[0], sums[1],
              strategy.read(greetings).values<float>()[0]);
}
