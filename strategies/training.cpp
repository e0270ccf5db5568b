// SPDX-License-Identifier: Apache-2.0
// Putting the cast of a training job on stage.
#include "strategies/training.hpp"

#include "actors/accumulator.hpp"
#include "actors/ask.hpp"
#include "actors/chief.hpp"
#include "actors/optimizer_settings.hpp"
#include "actors/recorder.hpp"
#include "actors/replica.hpp"
#include "actors/token_queue.hpp"
#include "messages/training_message.hpp"
#include "strategies/training_cast.hpp"
#include "strategies/training_session.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <future>

namespace troupe {

namespace {

void check(const strategy& strategy, const sync_replicas_optimizer& optimizer,
           const training_options& options) {
  auto refuse = [](std::string line) { throw failure{{errc::invalid_argument, std::move(line)}}; };
  if (strategy.variables().empty())
    refuse("the strategy has no variables; make one before training");
  if (options.steps == 0) refuse("steps is 0; training needs at least 1");
  auto expected_replicas = optimizer.options().total_num_replicas;
  if (strategy.num_replicas_in_sync() != expected_replicas)
    refuse(fmt::format("the strategy has {} replicas, the optimizer expects {}; make them agree",
                       strategy.num_replicas_in_sync(), expected_replicas));
}

// A job goes on where the one before it left the variables.
uint64_t prepare_owners(strategy& strategy, const sync_replicas_optimizer& optimizer) {
  uint64_t first_step = 0;
  for (const auto& variable : strategy.variables()) {
    auto ready = value_or_throw(ask<msg<wire::OptimizerInUse>>(
      strategy.world(), variable.owner(),
      make_use_optimizer(
        to_settings({.rule = optimizer.rule(), .schedule = optimizer.schedule()}))));
    first_step = std::max(first_step, ready.reader().getVersion());
  }
  return first_step;
}

std::shared_ptr<training_cast> spawn_cast(strategy& strategy, sync_policy policy,
                                          uint64_t first_step) {
  auto& world = strategy.world();
  auto cast = std::make_shared<training_cast>();
  cast->tokens = world.system().spawn(token_queue, token_queue_config{policy, first_step});
  cast->variables.assign(strategy.variables().begin(), strategy.variables().end());
  for (const auto& variable : cast->variables)
    cast->accumulators.push_back(world.system().spawn(
      accumulator, accumulator_config{variable.form(), variable.owner(), first_step, &world}));
  return cast;
}

// ---- the lives of replicas ----

task<void> live(activity& activity, replica_context::place place, uint64_t first_step,
                sync_replicas_optimizer optimizer, step_function step) {
  activity.set_local_step(first_step);
  replica_context context{activity, std::move(place)};
  training_session session{context, optimizer};
  while (true) {
    auto running = session.run(step);
    co_await running;
  }
}

// The evaluator has a token queue of its own, and so works on the newest step there is, at its
// pace.
task<void> evaluate(activity& activity, replica_context::place place, uint64_t first_step,
                    evaluation evaluation) {
  activity.set_local_step(first_step);
  auto tokens = place.cast->tokens;
  auto variables = place.cast->variables;
  auto index = place.replica;
  replica_context context{activity, std::move(place)};
  while (true) {
    auto taking
      = activity.request<msg<wire::Token>>(tokens, make_take_token(index, activity.local_step()));
    auto token = value_or_throw(co_await taking);
    activity.set_local_step(token.reader().getStep());
    auto reading = context.read(variables);
    auto values = co_await reading;
    auto computing = context.compute(
      [&evaluation, values](std::stop_token) { return evaluation.evaluate(values); });
    auto result = co_await computing;
    evaluation.on_result(activity.local_step(), result);
  }
}

task<void> evaluate_until_closed(activity& activity, replica_context::place place,
                                 uint64_t first_step, evaluation evaluation,
                                 std::shared_ptr<std::promise<void>> ended) {
  try {
    auto evaluating = evaluate(activity, std::move(place), first_step, std::move(evaluation));
    co_await evaluating;
  } catch (...) { // NOLINT(bugprone-empty-catch): a look at the variables never ends a job
  }
  ended->set_value();
}

/// One job on its stage, from the first actor to the report.
class stage {
public:
  stage(strategy& strategy, const sync_replicas_optimizer& optimizer,
        const training_options& options)
    : strategy_(strategy), world_(strategy.world()), optimizer_(optimizer), options_(options),
      first_step_(prepare_owners(strategy, optimizer)),
      cast_(spawn_cast(strategy, optimizer.options().policy, first_step_)) {}

  job_report play(const step_function& step) {
    spawn_evaluator();
    spawn_chief();
    for (uint32_t index = 0; index < strategy_.num_replicas_in_sync(); ++index)
      if (!is_dead(index)) spawn_replica(index, step);
    std::stop_callback on_stop{options_.stop, [this] { ask_to_stop(); }};
    auto over = over_.get_future();
    auto turned = world_.run_until(over);
    end_evaluator();
    if (!turned) report_.failure = turned.error();
    return report_;
  }

private:
  void spawn_chief() {
    recorder_config records;
    records.on_step = [this](const step_record& record) { on_step(record); };
    records.on_end = [this](const job_report& report) {
      report_ = report;
      over_.set_value();
    };
    chief_config config;
    config.sync = optimizer_.options();
    for (uint32_t index = 0; index < strategy_.num_replicas_in_sync(); ++index)
      config.absent += is_dead(index) ? 1 : 0;
    config.first_step = first_step_;
    config.steps = options_.steps;
    config.accumulators = cast_->accumulators;
    for (const auto& variable : cast_->variables)
      config.variables.push_back(variable.name());
    config.tokens = cast_->tokens;
    config.recorder = world_.system().spawn(recorder, std::move(records));
    config.deadline = options_.deadline;
    config.on_warning = options_.on_warning;
    config.world = &world_;
    chief_ = world_.system().spawn(chief, std::move(config));
  }

  void on_step(const step_record& record) {
    if (options_.on_step) options_.on_step(record);
    if (evaluation_tokens_ && record.step % options_.evaluation.every_steps == 0)
      caf::anon_send(evaluation_tokens_, make_put_tokens(record.step, 1));
  }

  void spawn_replica(uint32_t index, const step_function& step) {
    replica_config config{.index = index, .chief = chief_, .world = &world_};
    if (options_.pace)
      config.pace = [pace = options_.pace, index](uint64_t iteration, job_time elapsed) {
        return pace(index, iteration, elapsed);
      };
    config.body
      = [place = place_of(index), first_step = first_step_, optimizer = optimizer_,
         step](activity& activity) { return live(activity, place, first_step, optimizer, step); };
    world_.system().spawn(replica, std::move(config));
  }

  void spawn_evaluator() {
    if (options_.evaluation.every_steps == 0) return;
    evaluation_tokens_ = world_.system().spawn(
      token_queue, token_queue_config{sync_policy::latest_token, first_step_});
    auto cast = std::make_shared<training_cast>(*cast_);
    cast->tokens = evaluation_tokens_;
    auto place = place_of(strategy_.num_replicas_in_sync());
    place.cast = cast;
    replica_config config{.index = place.replica, .world = &world_};
    auto ended = std::make_shared<std::promise<void>>();
    evaluator_ended_ = ended->get_future();
    config.body = [place, first_step = first_step_, evaluation = options_.evaluation,
                   ended](activity& activity) {
      return evaluate_until_closed(activity, place, first_step, evaluation, ended);
    };
    world_.system().spawn(replica, std::move(config));
  }

  // After this nothing refers to the caller's functions any more.
  void end_evaluator() {
    if (!evaluation_tokens_) return;
    caf::anon_send(evaluation_tokens_, make_close_tokens());
    static_cast<void>(world_.run_until(evaluator_ended_));
    caf::anon_send_exit(evaluation_tokens_, caf::exit_reason::user_shutdown);
  }

  void ask_to_stop() {
    world_.call([chief = chief_] { caf::anon_send(chief, make_stop_job("asked to stop")); });
  }

  [[nodiscard]] bool is_dead(uint32_t index) const {
    return std::ranges::count(options_.dead_replicas, index) > 0;
  }

  [[nodiscard]] replica_context::place place_of(uint32_t index) const {
    return {index, strategy_.num_replicas_in_sync(), cast_};
  }

  strategy& strategy_;
  world& world_;
  const sync_replicas_optimizer& optimizer_;
  const training_options& options_;
  uint64_t first_step_;
  std::shared_ptr<const training_cast> cast_;
  chief_actor chief_;
  token_queue_actor evaluation_tokens_;
  std::future<void> evaluator_ended_;
  std::promise<void> over_;
  job_report report_;
};

} // namespace

job_report train(strategy& strategy, const sync_replicas_optimizer& optimizer,
                 const step_function& step, const training_options& options) {
  check(strategy, optimizer, options);
  stage stage{strategy, optimizer, options};
  return stage.play(step);
}

} // namespace troupe
