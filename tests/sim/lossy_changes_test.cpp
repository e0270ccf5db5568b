// SPDX-License-Identifier: Apache-2.0
// Goal: over links that lose, double and delay messages, each change that a replica makes of a
// variable counts once, also if the variable's owner is lost. Method: jobs in the virtual world
// whose replicas add 1 in each step; each addition is answered by a number of its own.
#include "kernels/tensor/random.hpp"
#include "simulation/network/simulated_network.hpp"
#include "strategies/jobs/training.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace lossy_changes_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t replicas = 3;
constexpr uint64_t steps = 6;

network_options options_of(uint64_t seed) {
  network_options options{.owners = 2, .seed = seed};
  options.latency = [seed](const passage& one) {
    random_stream late{random_key{seed, "latency", one.end, one.count}};
    return job_time{static_cast<int64_t>(5e7 * late.uniform())};
  };
  return options;
}

/// The course of a job.
struct course {
  job_report report;
  std::vector<double> answers; ///< The value that each addition was answered with.
  double sum = 0;              ///< The variable's value at the end.
  std::map<std::string, uint64_t> counts;
};

// @param loses_owner Whether one of the two holders of the variable is lost on the way.
course add_in_each_step(uint64_t seed, uint32_t holders, bool loses_owner) {
  course seen;
  auto world = world::virtual_time({.seed = seed});
  simulated_network network{world, replicas, options_of(seed)};
  parameter_server_strategy strategy{
    world, {.replicas = replicas, .placement = &network.placement(), .replicate_owners = holders}};
  auto sum = strategy.make_variable("sum 0", zeros({}), {.aggregation = variable_aggregation::sum});
  sync_replicas_optimizer optimizer{
    rules::sgd{.learning_rate = 1},
    {.replicas_to_aggregate = replicas, .policy = sync_policy::latest_token}};
  network.injector().begin(
    {"", {}, {.lost = 0.2, .duplicated = 0.2, .reordered = 0.2, .late = 300ms}});
  random_stream draw{random_key{seed, "moment of loss", 0, 0}};
  job_time moment{static_cast<int64_t>(8e9 * draw.uniform())};
  if (loses_owner)
    network.events().at(
      moment, [&] { network.crash(network.nodes().owner_node(static_cast<uint32_t>(seed % 2))); });
  auto step = [&seen, sum, optimizer](replica_context& context) -> task<void> {
    for (int i = 0; i < 2; ++i) {
      auto adding = context.assign_add(sum, scalar(1));
      auto answer = co_await adding;
      seen.answers.push_back(numbers_of(answer)[0]);
    }
    std::vector<gradient_and_variable> nothing{{zeros({}), sum}};
    auto applying = optimizer.apply_gradients(context, std::move(nothing));
    co_await applying;
  };
  seen.report = train(strategy, optimizer, step,
                      {.steps = steps,
                       .ask_again_after = 400ms,
                       .pace = [](auto...) { return 100ms; },
                       .on_warning = [](const std::string&) {}});
  seen.sum = numbers_of(strategy.read(sum))[0];
  seen.counts = network.transport().outcomes().counts();
  return seen;
}

void check_each_counts_once(const course& seen) {
  CHECK_FALSE(seen.report.failure);
  auto answers = seen.answers;
  std::ranges::sort(answers);
  REQUIRE(answers.size() == 2 * replicas * steps);
  for (size_t i = 0; i < answers.size(); ++i)
    CHECK(answers[i] == static_cast<double>(i + 1));
  CHECK(seen.sum == static_cast<double>(answers.size()));
}

/// How many gradients were told what their step came to, and how many were not.
struct told_aggregates {
  uint64_t told = 0;
  uint64_t missing = 0;
};

// All links are reliable. Replica 0 is first, and waits for the others longer than it waits for an
// answer before it asks again.
told_aggregates read_each_aggregate(uint64_t seed) {
  told_aggregates seen;
  auto world = world::virtual_time({.seed = seed});
  simulated_network network{world, replicas, options_of(seed)};
  parameter_server_strategy strategy{
    world, {.replicas = replicas, .placement = &network.placement(), .replicate_owners = 2}};
  auto weights = strategy.make_variable("w", zeros({}));
  sync_replicas_optimizer optimizer{
    rules::sgd{.learning_rate = 1},
    {.replicas_to_aggregate = replicas, .policy = sync_policy::latest_token}};
  auto step = [&seen, weights, optimizer](replica_context& context) -> task<void> {
    auto computing = context.compute([](std::stop_token) { return scalar(1); });
    auto gradient = co_await computing;
    std::vector<gradient_and_variable> gradients{{gradient, weights}};
    auto applying = optimizer.apply_gradients(context, gradients, {.read_aggregates = true});
    auto outcome = co_await applying;
    ++(outcome.aggregates.front() ? seen.told : seen.missing);
  };
  auto report = train(
    strategy, optimizer, step,
    {.steps = steps, .ask_again_after = 400ms, .pace = [](uint32_t replica, uint64_t, job_time) {
       return job_time{100ms} + replica * job_time{350ms};
     }});
  CHECK_FALSE(report.failure);
  return seen;
}

} // namespace

TEST_SUITE("sim/lossy_changes") {
  TEST_CASE("each change counts once, whatever becomes of its messages") {
    uint64_t lost = 0;
    uint64_t doubled = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      auto seen = add_in_each_step(seed, 1, false);
      INFO("seed ", seed);
      check_each_counts_once(seen);
      lost += seen.counts["lost ChangeVariable"] + seen.counts["lost VariableSnapshot"];
      doubled += seen.counts["duplicated ChangeVariable"];
    }
    CHECK(lost > 40);
    CHECK(doubled > 40);
  }

  TEST_CASE("the aggregate of a step is told to each replica, however long the step takes") {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      INFO("seed ", seed);
      auto seen = read_each_aggregate(seed);
      CHECK(seen.missing == 0);
      CHECK(seen.told >= replicas * (steps - 1)); // the job may be over before the last is told
    }
  }

  TEST_CASE("each change counts once, though one of the variable's two holders is lost, too") {
    uint64_t taken_over = 0;
    for (uint64_t seed = 0; seed < 80; ++seed) {
      auto seen = add_in_each_step(seed, 2, true);
      INFO("seed ", seed);
      check_each_counts_once(seen);
      taken_over += seen.counts.count("delivered TookOver");
    }
    CHECK(taken_over > 20);
  }
}

} // namespace lossy_changes_test
