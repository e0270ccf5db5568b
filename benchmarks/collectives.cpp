// SPDX-License-Identifier: Apache-2.0
// The cost of a meeting of replicas: an empty merge_call, and an all-reduce.
//
// collectives merge_call REPLICAS ROUNDS         prints the seconds of each round, for all together
// collectives all_reduce REPLICAS BYTES ROUNDS   prints the seconds of each round
#include "benchmarks/stopwatch.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

using namespace troupe;

namespace {

using durations = std::vector<double>;

task<durations> meet(replica_context& context, int rounds) {
  durations laps;
  for (int i = 0; i < rounds; ++i) {
    auto begin = clock_type::now();
    auto nothing = [](cross_replica_context&) {};
    auto merging = context.merge_call(nothing);
    co_await merging;
    laps.push_back(seconds_since(begin));
  }
  co_return laps;
}

task<durations> reduce(replica_context& context, int64_t elements, int rounds) {
  auto own = zeros({elements});
  durations laps;
  for (int i = 0; i < rounds; ++i) {
    auto begin = clock_type::now();
    auto reducing = context.all_reduce(reduce_op::sum, own);
    auto sum = co_await reducing;
    laps.push_back(seconds_since(begin));
  }
  co_return laps;
}

} // namespace

int main(int count, char** arguments) {
  if (count < 4) return EXIT_FAILURE;
  auto replicas = static_cast<uint32_t>(std::atoi(arguments[2]));
  auto in_process = world::threads();
  mirrored_strategy strategy{in_process, {.devices = cpu_devices(replicas)}};
  auto keep_first = [](replica_context& context, durations laps) {
    return context.replica_id_in_sync_group() == 0 ? laps : durations{};
  };
  auto is_merge_call = std::string_view{arguments[1]} == "merge_call";
  auto rounds = std::atoi(arguments[is_merge_call ? 3 : 4]);
  auto elements = is_merge_call ? 0 : std::atoll(arguments[3]) / 4;
  std::vector<durations> all(replicas);
  auto* laps_of = all.data();
  strategy.run([=](replica_context& context) -> task<void> {
    auto measuring = is_merge_call ? meet(context, rounds) : reduce(context, elements, rounds);
    auto laps = co_await measuring;
    laps_of[context.replica_id_in_sync_group()] = keep_first(context, std::move(laps));
  });
  for (auto lap : all.front())
    std::printf("%.9f\n", lap);
}
