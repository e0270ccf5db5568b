// SPDX-License-Identifier: Apache-2.0
// Options into a world, a strategy, an optimizer and a step function.
#include "tools/train/job.hpp"

#include "strategies/jobs/checkpoint_saver_hook.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tools/model/training_step.hpp"
#include "tools/train/option_agreement.hpp"
#include "tools/train/plan.hpp"
#include "tools/train/saved_job.hpp"

#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <utility>

namespace troupe {

namespace {

// In the virtual world arithmetic takes no time; this stands for it.
constexpr job_time virtual_computing_time = std::chrono::milliseconds{100};

job_time to_job_time(double seconds) {
  return std::chrono::duration_cast<job_time>(std::chrono::duration<double>{seconds});
}

sync_options sync_of(const train_options& options) {
  sync_options sync{static_cast<uint32_t>(options.aggregate),
                    static_cast<uint32_t>(options.replicas), options.policy};
  if (options.backups == backup_kind::dynamic) {
    sync.dynamic.emplace();
    sync.dynamic->curvature = options.curvature.value_or(0);
  }
  sync.slack = options.slack.value_or(0);
  if (options.initial_tokens) sync.initial_tokens = static_cast<int64_t>(*options.initial_tokens);
  return sync;
}

world world_of(const train_options& options) {
  world_options settings{.seed = options.seed};
  return options.world == world_kind::threads ? world::threads(settings)
                                              : world::virtual_time(settings);
}

std::function<job_time(uint32_t, uint64_t, job_time)> pace_of(const train_options& options) {
  std::vector<double> factors(options.replicas, 1.0);
  for (const auto& slow : options.slow)
    factors[slow.replica] = slow.factor;
  auto is_virtual = options.world == world_kind::virtual_time;
  return [factors, is_virtual](uint32_t replica, uint64_t, job_time elapsed) {
    auto delay
      = is_virtual ? virtual_computing_time * factors[replica] : elapsed * (factors[replica] - 1);
    return std::chrono::duration_cast<job_time>(delay);
  };
}

// An evaluation that fails does not end a job: a warning says why, and its result is NaN.
double evaluate(const learning_problem& problem, std::span<const tensor> values,
                const std::function<void(const std::string&)>& warn) {
  auto result = problem.evaluate(values);
  if (!result)
    warn(fmt::format("the held-out data were not evaluated: {}", result.error().message));
  return result.value_or(std::numeric_limits<double>::quiet_NaN());
}

} // namespace

uint64_t step_count(const train_options& options, const learning_problem& problem) {
  if (options.steps) return *options.steps;
  auto guesses
    = static_cast<double>(options.epochs.value_or(1)) * static_cast<double>(problem.pass_guesses);
  auto per_step = static_cast<double>(options.batch) * static_cast<double>(options.aggregate)
                  * static_cast<double>(problem.example_guesses);
  return static_cast<uint64_t>(std::ceil(guesses / per_step));
}

// What all processes of a job make alike.
class job_stage {
public:
  job_stage(const train_options& options, const learning_problem& problem,
            const train_cluster& cluster, std::function<void(const std::string&)> warn,
            const std::stop_token& stop)
    : plan{value_or_throw(plan_of(options, step_count(options, problem)))},
      world{world_of(options)}, server{world, cluster.tasks,
                                       server_of(options, cluster, warn, stop)},
      strategy{strategy_of(options, cluster.devices)} {
    training.agreement = agreement_of(options, problem);
    check_same_options(*strategy, training.agreement);
    for (const auto& [name, value] : initial_values(problem.model.variables, options.seed))
      strategy->make_variable(name, value);
    training.steps = step_count(options, problem);
    training.deadline = to_job_time(options.deadline_seconds);
    training.rejoin_patience = to_job_time(options.rejoin_patience_seconds);
    training.stops_on_loss = options.on_loss == loss_reaction::stop;
    training.pace = pace_of(options);
    training.on_warning = std::move(warn);
    training.on_failure = [](const error&) {}; // the command says it with its last line
    training.stop = stop;
  }

  job_report train(const train_options& options, const learning_problem& problem) {
    std::vector<variable> variables{strategy->variables().begin(), strategy->variables().end()};
    const auto examples = static_cast<uint32_t>(options.batch);
    if (replicas_meet(options.strategy)) {
      optimizer all{plan, {.aggregation = reduce_op::mean}};
      return troupe::train(*strategy, training_step(problem.work, examples, all, variables),
                           training);
    }
    sync_replicas_optimizer first{plan, sync_of(options)};
    return troupe::train(*strategy, first, training_step(problem.work, examples, first, variables),
                         training);
  }

  update_plan plan;
  troupe::world world;
  troupe::server server;
  std::unique_ptr<troupe::strategy> strategy;
  training_options training;

private:
  std::unique_ptr<troupe::strategy> strategy_of(const train_options& options,
                                                const train_devices& gpus) {
    auto deadline = to_job_time(options.deadline_seconds);
    auto trainers = server.trainers();
    auto devices = cpu_devices(static_cast<uint32_t>(server.replicas() / trainers.size()));
    if (options.strategy == strategy_kind::mirrored)
      return std::make_unique<mirrored_strategy>(
        world, mirrored_options{
                 .devices = devices, .deadline = deadline, .compute_devices = gpus.computing});
    if (options.strategy == strategy_kind::multi_worker_mirrored)
      return std::make_unique<multi_worker_mirrored_strategy>(
        world,
        multi_worker_mirrored_options{.devices = devices,
                                      .placement = server.placement(),
                                      .workers = trainers,
                                      .communication = {.implementation = options.communication},
                                      .compute_devices = gpus.computing,
                                      .device_collectives = gpus.collectives,
                                      .collective_device = gpus.reducing,
                                      .deadline = deadline});
    return std::make_unique<parameter_server_strategy>(
      world,
      parameter_server_options{.replicas = server.replicas(),
                               .placement = server.placement(),
                               .replicate_owners = static_cast<uint32_t>(options.replicate_owners),
                               .compute_devices = gpus.computing,
                               .variable_devices = gpus.holding,
                               .device_deadline = deadline});
  }

  static server_options server_of(const train_options& options, const train_cluster& cluster,
                                  const std::function<void(const std::string&)>& warn,
                                  const std::stop_token& stop) {
    auto settings = cluster.server;
    settings.replicas = static_cast<uint32_t>(options.replicas);
    settings.workers_meet = replicas_meet(options.strategy);
    settings.replicate_owners = static_cast<uint32_t>(options.replicate_owners);
    settings.on_warning = warn;
    settings.stop = stop;
    return settings;
  }
};

job_report follow_train_job(const train_options& options, const learning_problem& problem,
                            const train_cluster& cluster, const std::stop_token& stop) {
  auto warn = [](const std::string& line) { fmt::print(stderr, "troupe train: {}\n", line); };
  job_stage stage{options, problem, cluster, warn, stop};
  return stage.train(options, problem);
}

train_result run_train_job(const train_options& options, const train_surroundings& given) {
  const auto& problem = given.problem;
  auto& recorder = given.recorder;
  auto warn = [&](const std::string& line) { recorder.say("troupe train: " + line); };
  job_stage stage{options, problem, given.cluster, warn, given.stop};
  auto& training = stage.training;
  if (given.resume) training.steps -= given.resume->step;
  training.resume = given.resume;
  training.on_step = [&](const step_record& step) { recorder.on_step(step); };
  std::optional<std::pair<uint64_t, double>> last_evaluation; // of which step, and what
  training.evaluation
    = {.every_steps = options.evaluate_every,
       .evaluate = [&](std::span<const tensor> values) { return evaluate(problem, values, warn); },
       .on_result =
         [&](uint64_t step, double value) {
           recorder.on_evaluation(step, stage.world.now(), value);
           last_evaluation = {step, value};
         }};
  training.hooks = given.onlookers;
  if (options.checkpoint_every > 0)
    training.hooks.push_back(std::make_shared<checkpoint_saver_hook>(
      given.checkpoints, checkpoint_options{.every_steps = options.checkpoint_every,
                                            .keep = options.keep_checkpoints,
                                            .notes = notes_of(problem),
                                            .on_warning = warn}));
  auto report = stage.train(options, problem);
  auto final_value = std::numeric_limits<double>::quiet_NaN();
  if (!report.has_begun) return {std::move(report), final_value};
  if (last_evaluation && last_evaluation->first == report.step)
    return {std::move(report), last_evaluation->second}; // these variables were evaluated already
  try {
    std::vector<tensor> values;
    for (const auto& variable : stage.strategy->variables())
      values.push_back(stage.strategy->read(variable));
    final_value = evaluate(problem, values, warn);
    recorder.on_evaluation(report.step, stage.world.now(), final_value);
  } catch (const failure& failed) { // variables went with the process that held them
    if (!report.failure) report.failure = failed.reason();
  }
  return {std::move(report), final_value};
}

} // namespace troupe
