// SPDX-License-Identifier: Apache-2.0
// Goal: whatever the numbers of a job, no gradient is counted twice or lost, tokens are neither
// made nor lost, and a step is the mean of those it took. Method: jobs drawn by rapidcheck, in
// which each replica's gradient leaves a mark of its own. RC_PARAMS="reproduce=..." runs a failed
// one again.
#include "tests/strategies/small_job.hpp"

#include <cstdlib>
#include <map>
#include <rapidcheck.h>
#include <set>

namespace protocol_property_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// The numbers of a job.
struct scenario {
  sync_options sync;
  uint32_t dead = 0;
  uint64_t steps = 1;
  uint64_t seed = 0;
  int slowest = 1; ///< Computing takes 1 to this many nanoseconds.

  [[nodiscard]] uint32_t live() const { return sync.total_num_replicas - dead; }

  /// Whether the first step, and so every step, can get its gradients.
  [[nodiscard]] bool can_go_on() const {
    return live() > 0 && live() + sync.first_tokens() >= sync.replicas_to_aggregate;
  }
};

std::ostream& operator<<(std::ostream& out, const scenario& scenario) {
  return out << fmt::format(
           "{} of {}, {}, initial tokens {}, dead {}, steps {}, seed {}, slowest {}",
           scenario.sync.replicas_to_aggregate, scenario.sync.total_num_replicas,
           to_string(scenario.sync.policy), scenario.sync.initial_tokens, scenario.dead,
           scenario.steps, scenario.seed, scenario.slowest);
}

scenario draw() {
  scenario drawn;
  auto& sync = drawn.sync;
  sync.policy
    = *rc::gen::element(sync_policy::tensorflow, sync_policy::latest_token, sync_policy::cancel);
  sync.total_num_replicas = *rc::gen::inRange(1U, 8U);
  auto spare = sync.policy == sync_policy::tensorflow ? 4U : 0U;
  sync.replicas_to_aggregate = *rc::gen::inRange(1U, sync.total_num_replicas + spare + 1);
  sync.initial_tokens = *rc::gen::inRange<int64_t>(-1, 12);
  RC_PRE(sync.validate().has_value());
  drawn.dead = *rc::gen::inRange(0U, sync.total_num_replicas + 1);
  drawn.steps = *rc::gen::inRange<uint64_t>(1, 12);
  drawn.seed = *rc::gen::arbitrary<uint64_t>();
  drawn.slowest = *rc::gen::inRange(1, 20);
  return drawn;
}

/// The course of a job, as its replicas and its ledger saw it.
struct outcome {
  course seen;
  std::vector<double> values;
  std::map<uint64_t, uint32_t> pushes; ///< By the step that they were for.

  [[nodiscard]] size_t push_count() const {
    size_t count = 0;
    for (auto [step, pushed] : pushes)
      count += pushed;
    return count;
  }
};

outcome run(const scenario& scenario) {
  auto replicas = scenario.sync.total_num_replicas;
  small_job job{scenario.sync, scenario.seed, replicas};
  outcome result;
  auto step = [&](replica_context& context) -> task<void> {
    auto mark = zeros({replicas}, dtype::f64);
    mark.mutable_values<double>()[context.replica_id_in_sync_group()] = -1;
    auto computing = context.compute([](std::stop_token) { return 0; });
    co_await computing;
    ++result.pushes[context.local_step()];
    std::vector<gradient_and_variable> gradients{{mark, job.weights}};
    auto applying = job.optimizer.apply_gradients(context, gradients);
    co_await applying;
  };
  training_options options{.steps = scenario.steps};
  for (uint32_t replica = 0; replica < scenario.dead; ++replica)
    options.dead_replicas.push_back(replica);
  options.pace = [&](uint32_t replica, uint64_t iteration, job_time) {
    random_stream draw{random_key{scenario.seed, "pace", replica, iteration}};
    return job_time{1 + static_cast<int64_t>(draw.below(static_cast<uint64_t>(scenario.slowest)))};
  };
  result.seen = job.run(step, options);
  result.values = job.values();
  return result;
}

// ---- the properties ----

void check_end(const scenario& scenario, const job_report& report) {
  RC_ASSERT(report.lost.empty());
  if (scenario.can_go_on()) {
    RC_ASSERT(!report.failure);
    RC_ASSERT(report.step == scenario.steps);
  } else {
    RC_ASSERT(report.failure.has_value());
    RC_ASSERT(report.step == 0U);
  }
}

void check_steps_follow_each_other(const std::vector<step_record>& steps) {
  job_time before{0};
  for (size_t i = 0; i < steps.size(); ++i) {
    RC_ASSERT(steps[i].step == i + 1);
    RC_ASSERT(steps[i].began == before);
    RC_ASSERT(steps[i].ended > before);
    before = steps[i].ended;
  }
}

void check_who_was_accepted(const scenario& scenario, const step_record& step) {
  RC_ASSERT(step.accepted.size() >= scenario.sync.replicas_to_aggregate);
  for (const auto& gradient : step.accepted)
    RC_ASSERT(gradient.local_step == step.step - 1);
  for (const auto& gradient : step.stale)
    RC_ASSERT(gradient.staleness > 0U);
  if (scenario.sync.policy == sync_policy::tensorflow) return;
  auto replicas = replicas_of(step.accepted);
  RC_ASSERT(std::set(replicas.begin(), replicas.end()).size() == replicas.size());
  for (const auto& gradient : step.cancelled)
    RC_ASSERT(std::ranges::count(replicas, gradient.replica) == 0);
}

// A replica gives one gradient at a time, and each takes some time: replica and time are a name.
void check_nothing_is_counted_twice_or_lost(const scenario& scenario, const outcome& result) {
  std::set<std::pair<uint32_t, job_time>> judged;
  for (const auto& step : result.seen.steps)
    for (const auto* kind : {&step.accepted, &step.stale})
      for (const auto& gradient : *kind)
        RC_ASSERT(judged.emplace(gradient.replica, gradient.arrived).second);
  // Gradients that came after the last step are in no book: at most one of each replica.
  RC_ASSERT(judged.size() <= result.push_count());
  if (scenario.can_go_on()) RC_ASSERT(result.push_count() <= judged.size() + scenario.live());
}

void check_tokens(const scenario& scenario, const std::map<uint64_t, uint32_t>& pushes) {
  const auto& sync = scenario.sync;
  for (auto [step, pushed] : pushes)
    if (sync.policy != sync_policy::tensorflow)
      RC_ASSERT(pushed <= scenario.live());
    else
      RC_ASSERT(pushed
                <= (step == 0 ? scenario.live() + sync.first_tokens() : sync.tokens_per_step()));
}

void check_means(const outcome& result) {
  std::vector<double> expected(result.values.size());
  for (const auto& step : result.seen.steps) {
    std::vector<double> sums(expected.size());
    for (const auto& gradient : step.accepted)
      sums[gradient.replica] -= 1;
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] -= sums[i] / static_cast<double>(step.accepted.size());
  }
  RC_ASSERT(result.values == expected);
}

} // namespace

TEST_SUITE("strategies/jobs/protocol_property") {
  TEST_CASE("the protocol keeps its promises whatever the numbers") {
    // The same cases every time, unless the environment asks for others.
    setenv("RC_PARAMS", "seed=20161 max_success=300", 0);
    CHECK(rc::check("promises of the protocol", [] {
      auto scenario = draw();
      RC_LOG() << scenario << '\n';
      auto result = run(scenario);
      check_end(scenario, result.seen.report);
      check_steps_follow_each_other(result.seen.steps);
      for (const auto& step : result.seen.steps)
        check_who_was_accepted(scenario, step);
      check_nothing_is_counted_twice_or_lost(scenario, result);
      check_tokens(scenario, result.pushes);
      check_means(result);
    }));
  }
}

} // namespace protocol_property_test
