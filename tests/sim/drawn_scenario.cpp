// SPDX-License-Identifier: Apache-2.0
// Drawing scenarios, and comparing what two engines make of them.
#include "tests/sim/drawn_scenario.hpp"

#include "simulation/distributions/distribution.hpp"
#include "tests/sim/dice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

using namespace std::chrono_literals;

namespace troupe::test {

namespace {

constexpr std::array computing{"constant(1)",
                               "exponential(1)",
                               "uniform(0.5, 1.5)",
                               "two_point(0.3, 2)",
                               "mixture(0.5: 1, 0.3: 2, 0.2: 3)",
                               "persistent(two_point(0.3, 3))",
                               "1 + common(two_point(0.2, 2))",
                               "pareto(1, 1.5)",
                               "1 slow=1/4*2"};

constexpr std::array update_times{0ms, 1ms, 250ms, 1000ms, 1700ms};

sync_options draw_sync(dice& draw) {
  sync_options sync;
  sync.policy = draw.one_of(all_sync_policies);
  sync.total_num_replicas = 1 + draw.below(draw.one_in(4) ? 40 : 9);
  sync.replicas_to_aggregate = 1 + draw.below(sync.total_num_replicas);
  if (draw.one_in(3)) sync.replicas_to_aggregate = sync.total_num_replicas;
  const auto& traits = traits_of(sync.policy);
  if (traits.repeats && traits.counts_tokens() && draw.one_in(8))
    sync.replicas_to_aggregate += draw.below(4); // some give more than one gradient
  if (traits.keeps_pace()) {
    sync.replicas_to_aggregate = 1;
    sync.slack = draw.below(4);
  }
  if (traits.counts_tokens() && draw.one_in(3)) sync.initial_tokens = draw.below(12);
  if (traits.may_adapt() && draw.one_in(3)) {
    auto gain = draw.one_in(4) ? gain_model::measured : gain_model::power;
    sync.dynamic = dynamic_backups{.gain = gain, .power = draw.one_in(2) ? 1 : 0.5};
  }
  sync.one_gradient_per_replica = draw.one_in(4);
  return sync;
}

bool is_equal(double left, double right) {
  return left == right || (std::isnan(left) && std::isnan(right));
}

bool is_equal(const contribution& left, const contribution& right) {
  return left.replica == right.replica && left.local_step == right.local_step
         && left.staleness == right.staleness && left.arrived == right.arrived
         && left.compute == right.compute && left.waited == right.waited
         && is_equal(left.loss, right.loss) && left.examples == right.examples;
}

bool is_equal(const variable_update& left, const variable_update& right) {
  return left.variable == right.variable && left.ended == right.ended && left.took == right.took;
}

std::string text_of(const contribution& one) {
  return fmt::format("{} of step {}, late by {}, at {}, computed {}, waited {}", one.replica,
                     one.local_step, one.staleness, one.arrived.count(), one.compute.count(),
                     one.waited.count());
}

std::string difference(const std::vector<contribution>& actors,
                       const std::vector<contribution>& direct, std::string_view which) {
  if (actors.size() != direct.size())
    return fmt::format("{} gradients are {}: {}", actors.size(), which, direct.size());
  for (size_t i = 0; i < actors.size(); ++i)
    if (!is_equal(actors[i], direct[i]))
      return fmt::format("{} [{}] is {}: {}", which, i, text_of(actors[i]), text_of(direct[i]));
  return {};
}

std::string difference(const step_record& actors, const step_record& direct) {
  auto numbers = [](const step_record& step) {
    return std::array{static_cast<int64_t>(step.step),
                      step.began.count(),
                      step.ended.count(),
                      step.apply.count(),
                      static_cast<int64_t>(step.needed),
                      static_cast<int64_t>(step.live)};
  };
  if (numbers(actors) != numbers(direct))
    return fmt::format("step, begin, end, apply, needed and live are {}: {}", numbers(actors),
                       numbers(direct));
  for (auto [which, part] : {std::pair{"accepted", &step_record::accepted},
                             {"stale", &step_record::stale},
                             {"cancelled", &step_record::cancelled}})
    if (auto found = difference(actors.*part, direct.*part, which); !found.empty()) return found;
  auto same
    = std::ranges::equal(actors.updates, direct.updates,
                         [](const auto& left, const auto& right) { return is_equal(left, right); });
  return same ? "" : "updates differ";
}

// All that a report says but for the number of events.
std::string text_of(const scenario_report& report) {
  auto text = fmt::format(
    "hash {:x}, {} steps, {} accepted, {} stale, {} cancelled, staleness {}, needed {}, wasted {}, "
    "time {}, {} lost, {} restarts, reached step {}",
    report.log_hash, report.step_times.size(), report.accepted, report.stale, report.cancelled,
    report.staleness_counts, report.needed, report.wasted.count(), report.virtual_time.count(),
    report.lost, report.restarts, report.job.step);
  if (report.job.failure) text += fmt::format(", failure: {}", report.job.failure->message);
  for (const auto& open : {report.job.open, std::optional<open_step>{report.stalled}})
    if (open)
      text += fmt::format(", step {} open, {} live, {} needed, {} tokens", open->step, open->live,
                          open->needed, open->tokens.value_or(~0U));
  return text;
}

} // namespace

scenario draw_scenario(uint64_t seed) {
  dice draw{seed, "drawn scenario"};
  scenario what{.seed = seed};
  do
    what.sync = draw_sync(draw);
  while (!what.sync.validate());
  what.steps = 1 + draw.below(30);
  what.compute = distribution::parse(draw.one_of(computing)).value().times(seed);
  if (draw.one_in(4))
    for (uint32_t replica = 0; replica < what.sync.total_num_replicas; ++replica)
      if (draw.one_in(5)) what.dead_replicas.push_back(replica);
  if (draw.one_in(4))
    what.local_sgd
      = {.local_steps = 1 + draw.below(4), .averaging_time = draw.one_of(update_times)};
  if (draw.one_in(4)) {
    std::array times{draw.one_of(update_times), draw.one_of(update_times)};
    what.update = [times](uint64_t step) { return job_time{times[step % 2]}; };
  }
  return what;
}

std::string describe(const scenario& drawn) {
  const auto& sync = drawn.sync;
  return fmt::format("{}, {} of {} replicas, {} dead, {} initial tokens, {}slack {}, {}{} local "
                     "steps, {}{} steps",
                     to_string(sync.policy), sync.replicas_to_aggregate, sync.total_num_replicas,
                     drawn.dead_replicas.size(), sync.initial_tokens,
                     sync.one_gradient_per_replica ? "distinct, " : "", sync.slack,
                     sync.dynamic ? "dynamic, " : "", drawn.local_sgd.local_steps,
                     drawn.update ? "updates take time, " : "", drawn.steps);
}

engine_course run_by(simulation_engine engine, scenario what) {
  engine_course course;
  what.engine = engine;
  what.on_step = [&](const step_record& step) { course.steps.push_back(step); };
  course.report = simulate(what);
  return course;
}

std::string difference(const engine_course& actors, const engine_course& direct) {
  for (size_t i = 0; i < std::min(actors.steps.size(), direct.steps.size()); ++i)
    if (auto found = difference(actors.steps[i], direct.steps[i]); !found.empty())
      return fmt::format("step {}: {}", i + 1, found);
  auto expected = text_of(actors.report);
  auto seen = text_of(direct.report);
  if (expected != seen) return fmt::format("{}; directly: {}", expected, seen);
  return actors.report.step_times == direct.report.step_times ? "" : "step times differ";
}

std::string difference_between_engines(const scenario& what) {
  return difference(run_by(simulation_engine::actors, what),
                    run_by(simulation_engine::direct, what));
}

} // namespace troupe::test
