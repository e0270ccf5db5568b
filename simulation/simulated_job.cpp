// SPDX-License-Identifier: Apache-2.0
// The actors of a real job in a virtual world, with its network and its faults.
#include "simulation/simulated_job.hpp"

#include "actors/recording/seconds.hpp"
#include "kernels/tensor/change.hpp"
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "strategies/jobs/replica_life.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <future>
#include <limits>
#include <utility>

namespace troupe {

void snapshot_keeper::after_snapshot(const job_snapshot& taken) {
  last_ = taken;
  last_->tokens.clear();
  last_->replicas.clear();
}

simulated_job::simulated_job(const scenario& scenario, scenario_report& report)
  : scenario_(scenario), report_(report), book_(report, scenario),
    world_(world::virtual_time({.seed = scenario.seed, .observed = false})),
    updates_(scenario.update, scenario.sync.total_num_replicas), draws_(scenario),
    learning_(scenario.learning),
    snapshots_(std::make_shared<snapshot_keeper>(scenario.snapshot_every)) {
  auto replicas = scenario.sync.total_num_replicas;
  if (learning_) {
    auto task = std::make_shared<learning_task>(*learning_->task);
    task->differentiate = [this](std::span<const tensor> values, uint32_t replica, uint64_t batch) {
      auto computed = scenario_.learning->task->differentiate(values, replica, batch);
      spoil(replica, computed.gradients);
      return computed;
    };
    learning_->task = std::move(task);
    watch_.emplace(*learning_, replicas, slow_replicas(scenario.compute, replicas));
  }
  auto network = scenario.network;
  if (!network && !scenario.faults.is_empty()) network.emplace();
  if (!network) return;
  value_or_throw(scenario.faults.validate(replicas, network->owners));
  network->seed = scenario.seed;
  network_.emplace(world_, replicas, *network);
  network_->transport().on_delivery = scenario.on_delivery;
  if (network->meets_at_roll_call)
    processes_.emplace(*network_, world_, replicas, scenario.late_starts, report.processes);
  if (scenario.faults.is_empty()) return;
  faults_.emplace(*network_, scenario.faults, replicas, scenario.seed);
  faults_->log().on_fault = scenario.on_fault;
  network_->transport().on_delivery = [this](const delivery& delivery) {
    faults_->planned().on_delivery(delivery);
    if (scenario_.on_delivery) scenario_.on_delivery(delivery);
  };
}

void simulated_job::run() {
  ptrdiff_t refused = 0; // gradients, each with its replica
  while (true) {
    report_.job = attempt();
    refused += std::ranges::count(report_.job.lost, errc::invalid_argument,
                                  [](const auto& lost) { return lost.reason.code; });
    if (processes_) processes_->end();
    auto restart = faults_ ? faults_->lost().restart_time() : std::nullopt;
    if (!report_.job.has_begun && !restart) restart = next_try();
    if (!report_.job.failure || !restart || end_of_time_.stop_requested()) break;
    ++report_.restarts;
    const auto ended = network_->events().now();
    wait_until(*restart);
    report_.down += network_->events().now() - ended;
    network_->reset();
  }
  if (end_of_time_.stop_requested()) throw failure{end_of_time(report_.step_times.size())};
  if (network_) {
    report_.probes = network_->transport().outcomes().counts();
    report_.lost = network_->transport().outcomes().lost_gradients();
  }
  if (faults_)
    report_.probes.insert(faults_->log().counts().begin(), faults_->log().counts().end());
  if (refused > 0) report_.probes["refused gradient"] = static_cast<uint64_t>(refused);
  if (watch_) report_.losses = watch_->curve();
  if (report_.job.failure) report_.stalled = stall();
  report_.events = world_.event_count();
}

job_report simulated_job::attempt() {
  auto local_steps = scenario_.local_sgd.local_steps;
  auto plan = learning_ ? owners_plan(*learning_, local_steps) : update_plan{.rule = rules::sgd{}};
  sync_replicas_optimizer optimizer{plan, scenario_.sync};
  placement* placement = network_ ? &network_->placement() : nullptr;
  parameter_server_strategy strategy{world_,
                                     {.replicas = scenario_.sync.total_num_replicas,
                                      .placement = placement,
                                      .replicate_owners = scenario_.replicate_owners}};
  make_variables(strategy);
  look_at_loss(strategy, 0);
  auto options = this->options();
  if (processes_) processes_->agree(job_agreement(strategy, options));
  auto report = train(strategy, optimizer, step_of(optimizer), std::move(options));
  auto may_be_lost = report.failure && scenario_.replicate_owners > 1;
  if (!may_be_lost) look_at_end(strategy, report.step);
  variables_.clear();
  return report;
}

void simulated_job::make_variables(strategy& strategy) {
  if (learning_) {
    for (const auto& [name, value] : learning_->task->variables)
      variables_.push_back(strategy.make_variable(name, value));
    return;
  }
  variables_.push_back(strategy.make_variable("only", zeros({1})));
  for (uint32_t i = 1; network_ && i < network_->nodes().owner_count(); ++i)
    variables_.push_back(strategy.make_variable(fmt::format("part {}", i), zeros({1})));
}

void simulated_job::look_at_loss(strategy& strategy, uint64_t step) {
  if (!watch_ || !are_owners_up()) return;
  auto values = mapped(variables_, [&](const auto& variable) { return strategy.read(variable); });
  watch_->look(step, step == 0 ? 0 : seconds(report_.virtual_time), values);
}

// To read a variable takes time, in which faults go on: its owner, or the process that knows the
// owner, may be lost although the job has ended well.
void simulated_job::look_at_end(strategy& strategy, uint64_t step) {
  try {
    look_at_loss(strategy, step);
  } catch (const failure&) {
    if (!faults_) throw;
  }
}

training_options simulated_job::options() {
  training_options options;
  options.on_warning = [](const std::string&) {}; // both are results here, not news
  options.on_failure = [](const error&) {};
  options.steps = scenario_.steps;
  options.deadline = scenario_.deadline;
  options.dead_replicas = scenario_.dead_replicas;
  options.stop = end_of_time_.get_token();
  options.pace = [this](uint32_t replica, uint64_t, job_time) { return pace(replica); };
  options.on_step
    = [this](const step_record& step) { scenario_.update ? keep(updates_.add(step)) : keep(step); };
  if (watch_) options.evaluation = watch_->during(world_);
  if (!network_) return options;
  options.ask_again_after = scenario_.ask_again_after;
  options.min_replicas = scenario_.min_replicas;
  if (auto absence = scenario_.faults.longest_absence(network_->options().silence_timeout);
      absence > job_time{0})
    options.rejoin_timeout = absence + std::chrono::seconds{1};
  for (uint32_t replica = 0; replica < scenario_.sync.total_num_replicas; ++replica)
    if (network_->nodes().is_gone_for_good(network_->nodes().replica_node(replica)))
      options.dead_replicas.push_back(replica); // others that are down are waited for
  if (scenario_.faults.restarts_job()) {
    options.hooks.push_back(snapshots_);
    options.resume = snapshots_->last();
  }
  const auto step = options.resume ? options.resume->step : 0;
  options.steps -= step;
  go_back_to(step);
  return options;
}

void simulated_job::keep(const step_record& step) {
  book_.add(step);
  kept_.push_back(step.accepted.size());
  if (step.ended > time_max) end_of_time_.request_stop();
  if (scenario_.on_step) scenario_.on_step(step);
}

void simulated_job::go_back_to(uint64_t step) {
  for (; kept_.size() > step; kept_.pop_back()) {
    ++report_.undone_steps;
    report_.undone_accepted += kept_.back();
  }
  kept_.resize(step); // the job may end before it tells of the snapshot's step
}

step_function simulated_job::step_of(const sync_replicas_optimizer& optimizer) {
  auto step = learning_ ? learn(optimizer, variables_, *learning_, scenario_.local_sgd.local_steps)
                        : compute_nothing(optimizer);
  if (!scenario_.update) return step;
  return [this, step](replica_context& context) {
    updates_.begin(context.replica_id_in_sync_group(), context.local_step());
    return step(context);
  };
}

// Where messages take time, a replica's reading takes time, too.
// All replicas share the constant part: ten thousand copies of it would each be cold in the cache.
step_function simulated_job::compute_nothing(const sync_replicas_optimizer& optimizer) {
  struct shared_part {
    sync_replicas_optimizer optimizer;
    std::vector<variable> variables;
    gradient nothing = zeros({1});
  };

  auto shared = std::make_shared<const shared_part>(shared_part{optimizer, variables_});
  return [this, shared](replica_context& context) -> task<void> {
    const auto& [optimizer, variables, nothing] = *shared;
    if (network_) {
      auto reading = context.read(variables);
      co_await reading;
    }
    for (uint32_t i = 0; i < scenario_.local_sgd.local_steps; ++i) {
      auto computing = context.compute([](std::stop_token) { return 0; });
      co_await computing;
    }
    std::vector<gradient> gradients(variables.size(), nothing);
    spoil(context.replica_id_in_sync_group(), gradients);
    auto pairs = pairs_of(std::move(gradients), variables);
    auto applying = optimizer.apply_gradients(context, std::move(pairs));
    co_await applying;
  };
}

void simulated_job::spoil(uint32_t replica, std::vector<gradient>& gradients) {
  constexpr auto not_a_number = std::numeric_limits<double>::quiet_NaN();
  auto kind = faults_ ? faults_->planned().next_corruption(replica) : corruption::none;
  if (kind == corruption::none) return;
  for (auto& gradient : gradients) {
    const auto* dense = std::get_if<tensor>(&gradient);
    if (kind == corruption::wrong_shape || dense == nullptr)
      gradient = zeros({2, 3, 5, 7});
    else
      gradient = filled(dense->type(), dense->extents(), not_a_number);
  }
}

job_time simulated_job::pace(uint32_t replica) {
  auto time = draws_.next(replica);
  if (!faults_) {
    auto now = world_.now();
    return later(now, updates_.remaining(replica, now) + time) - now;
  }
  time = updates_.remaining(replica, network_->events().now())
         + faults_->freezes().stretched(replica, time);
  return network_->clocks().error_of(network_->nodes().replica_node(replica)).counted_in(time);
}

// The chief's report from when it ended the job. A chief that is gone says nothing; then the report
// has what other nodes see.
stall_report simulated_job::stall() const {
  const auto& job = report_.job;
  auto open = job.open.value_or(open_step{.step = kept_.size() + 1,
                                          .live = count_live(),
                                          .needed = scenario_.sync.replicas_to_aggregate});
  if (!traits_of(scenario_.sync.policy).counts_tokens())
    open.tokens = 0; // they wait under no other
  return {open, job.failure->message};
}

uint32_t simulated_job::count_live() const {
  auto live = live_replicas(scenario_);
  for (const auto& lost : report_.job.lost) {
    auto is_back = network_ && lost.reason.code == errc::unavailable
                   && network_->nodes().is_up(network_->nodes().replica_node(lost.replica));
    if (!is_back) std::erase(live, lost.replica);
  }
  return static_cast<uint32_t>(live.size());
}

// A process that was lost before the job had begun ends it for all; then all are started again.
std::optional<job_time> simulated_job::next_try() {
  constexpr uint32_t tries_max = 10;
  if (!processes_ || ++tries_ > tries_max) return std::nullopt;
  return network_->events().now() + std::chrono::seconds{1};
}

bool simulated_job::are_owners_up() const {
  uint32_t down = 0;
  for (uint32_t owner = 0; network_ && owner < network_->nodes().owner_count(); ++owner)
    down += network_->nodes().is_up(network_->nodes().owner_node(owner)) ? 0 : 1;
  return down < scenario_.replicate_owners;
}

void simulated_job::wait_until(job_time time) {
  std::promise<void> reached;
  auto due = reached.get_future();
  network_->events().at(time, [&reached] { reached.set_value(); });
  static_cast<void>(world_.run_until(due));
}

} // namespace troupe
