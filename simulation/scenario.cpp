// SPDX-License-Identifier: Apache-2.0
// Simulating a job: the production cast, a variable of one element, and a virtual clock.
#include "simulation/scenario.hpp"

#include "simulation/learning_job.hpp"
#include "simulation/ledger_hash.hpp"
#include "simulation/network/simulated_network.hpp"
#include "strategies/training.hpp"

#include <fmt/format.h>
#include <limits>
#include <numeric>

namespace troupe {

namespace {

double seconds(job_time time) {
  return std::chrono::duration<double>(time).count();
}

// Where messages take time, what a replica reads does so too.
step_function compute_nothing(const sync_replicas_optimizer& optimizer,
                              const std::vector<variable>& variables, const scenario& scenario,
                              update_delay& updates) {
  auto gradient = zeros({1});
  auto reads = scenario.network.has_value();
  auto local_steps = scenario.local_sgd.local_steps;
  return [=, &updates](replica_context& context) -> task<void> {
    updates.begin(context.replica_id_in_sync_group(), context.local_step());
    if (reads) {
      auto reading = context.read(variables);
      co_await reading;
    }
    for (uint32_t i = 0; i < local_steps; ++i) {
      auto computing = context.compute([](std::stop_token) { return 0; });
      co_await computing;
    }
    std::vector<gradient_and_variable> gradients;
    for (const auto& variable : variables)
      gradients.push_back({gradient, variable});
    auto applying = optimizer.apply_gradients(context, std::move(gradients));
    co_await applying;
  };
}

std::vector<variable> make_variables(strategy& strategy,
                                     const std::optional<learning_options>& learning) {
  if (!learning) return {strategy.make_variable("only", zeros({1}))};
  std::vector<variable> variables;
  for (const auto& [name, value] : learning->task->variables)
    variables.push_back(strategy.make_variable(name, value));
  return variables;
}

std::vector<tensor> read_all(strategy& strategy, const std::vector<variable>& variables) {
  std::vector<tensor> values;
  for (const auto& variable : variables)
    values.push_back(strategy.read(variable));
  return values;
}

/// Keeps of each step what reports are made of.
class step_book {
public:
  step_book(scenario_report& report, sync_policy policy)
    : report_(report), cancels_(policy == sync_policy::cancel) {}

  void add(const step_record& step) {
    hash_.add(step);
    report_.step_times.push_back(step.ended - step.began);
    report_.accepted += step.accepted.size();
    report_.stale += step.stale.size();
    ++report_.needed[step.needed];
    report_.cancelled += step.cancelled.size();
    for (const auto& gradient : step.accepted)
      ++report_.lags[gradient.lag];
    for (const auto& gradient : step.stale)
      add_stale(gradient);
    // Whoever is cancelled has worked since the step began: a token takes no time to come.
    report_.wasted += (step.ended - step.began) * static_cast<int64_t>(step.cancelled.size());
    report_.virtual_time = step.ended;
    report_.log_hash = hash_.value();
  }

private:
  // Where replicas are cancelled, one that was done at the same moment as the last that was needed
  // is told to stop and has its gradient dropped: that is one gradient, and it is in the books.
  void add_stale(const contribution& gradient) {
    ++report_.lags[gradient.lag];
    if (cancels_)
      --report_.cancelled;
    else
      report_.wasted += gradient.compute;
  }

  scenario_report& report_;
  bool cancels_;
  ledger_hash hash_;
};

// The first local step of a round begins with the averaging that ends the round before.
computing_time pace_of(const scenario& scenario) {
  return [compute = scenario.compute, local = scenario.local_sgd](uint32_t replica,
                                                                  uint64_t computation) {
    auto averages = computation >= local.local_steps && computation % local.local_steps == 0;
    return compute(replica, computation) + (averages ? local.averaging_time : job_time{0});
  };
}

// The chief finds a stall when nobody is left to compute and, for those who live, no token.
std::optional<stall_report> stall_of(const scenario& scenario, const job_report& job) {
  if (!job.failure || job.failure->code != errc::stalled) return std::nullopt;
  auto gone = scenario.dead_replicas.size() + job.lost.size();
  auto live = scenario.sync.total_num_replicas - static_cast<uint32_t>(gone);
  return stall_report{.step = job.step + 1,
                      .live = live,
                      .needed = scenario.sync.replicas_to_aggregate,
                      .tokens = live == 0 ? scenario.sync.first_tokens() : 0,
                      .reason = job.failure->message};
}

} // namespace

double scenario_report::mean_step_seconds(size_t first) const {
  if (first >= step_times.size()) return std::numeric_limits<double>::quiet_NaN();
  auto begin = step_times.begin() + static_cast<ptrdiff_t>(first);
  auto sum = std::accumulate(begin, step_times.end(), job_time{0});
  return seconds(sum) / static_cast<double>(step_times.end() - begin);
}

double scenario_report::drop_fraction() const {
  auto all = accepted + stale + cancelled;
  return all == 0 ? 0 : static_cast<double>(stale + cancelled) / static_cast<double>(all);
}

scenario_report simulate(const scenario& scenario) {
  const auto& learning = scenario.learning;
  auto local_steps = scenario.local_sgd.local_steps;
  auto plan = learning ? owners_plan(*learning, local_steps) : update_plan{.rule = rules::sgd{}};
  sync_replicas_optimizer optimizer{plan, scenario.sync};
  auto world = world::virtual_time({.seed = scenario.seed, .observed = false});
  auto replicas = scenario.sync.total_num_replicas;
  parameter_server_strategy strategy{world, {.replicas = replicas}};
  auto variables = make_variables(strategy, learning);
  scenario_report report;
  training_options options;
  std::optional<simulated_network> network;
  if (scenario.network) {
    for (uint32_t i = 1; !learning && i < scenario.network->owners; ++i)
      variables.push_back(strategy.make_variable(fmt::format("part {}", i), zeros({1})));
    network.emplace(world, scenario.sync.total_num_replicas, *scenario.network);
    options.placement = &*network;
  }
  options.steps = scenario.steps;
  options.deadline = job_time::max();
  options.dead_replicas = scenario.dead_replicas;
  update_delay updates{scenario.update, scenario.sync.total_num_replicas};
  options.pace = [&, delay = pace_of(scenario)](uint32_t replica, uint64_t computation, job_time) {
    return updates.remaining(replica, world.now()) + delay(replica, computation);
  };
  step_book book{report, scenario.sync.policy};
  auto tell = [&](const step_record& step) {
    book.add(step);
    if (scenario.on_step) scenario.on_step(step);
  };
  options.on_step
    = [&](const step_record& step) { tell(scenario.update ? updates.add(step) : step); };
  if (learning) {
    loss_watch watch{*learning, replicas, slow_replicas(scenario.compute, replicas)};
    watch.look(0, 0, read_all(strategy, variables));
    options.evaluation = watch.during(world);
    auto step = learn(optimizer, variables, *learning, local_steps);
    report.job = train(strategy, optimizer, step, options);
    watch.look(report.job.step, seconds(report.virtual_time), read_all(strategy, variables));
    report.losses = watch.curve();
  } else {
    auto step = compute_nothing(optimizer, variables, scenario, updates);
    report.job = train(strategy, optimizer, step, options);
  }
  if (network) report.probes = network->counts();
  report.events = world.event_count();
  report.stalled = stall_of(scenario, report.job);
  return report;
}

} // namespace troupe
