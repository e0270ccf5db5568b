// SPDX-License-Identifier: Apache-2.0
// Checks what a job is given, and runs it in the role that this process has.
#include "strategies/jobs/training.hpp"

#include "actors/policies/step_rules.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/errors/users_code.hpp"
#include "strategies/contexts/context.hpp"
#include "strategies/contexts/replica_function.hpp"
#include "strategies/jobs/job_runner.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace troupe {

namespace {

void check_variables(const strategy& strategy) {
  require(!strategy.variables().empty(), "the strategy has no variables; make one before training");
}

void check_options(const training_options& options) {
  require(options.steps > 0, "steps is 0; training needs at least 1");
  require(std::ranges::count(options.hooks, nullptr) == 0,
          "a hook of the job is a null pointer; make the hook, or leave it out");
  const auto& evaluation = options.evaluation;
  if (evaluation.every_steps > 0 && (!evaluation.evaluate || !evaluation.on_result))
    throw_failure(errc::invalid_argument,
                  "evaluation.every_steps is {}, but evaluation.{} is empty; set the function, or "
                  "evaluate every 0 steps",
                  evaluation.every_steps, evaluation.evaluate ? "on_result" : "evaluate");
}

void check(const strategy& strategy, const sync_replicas_optimizer& optimizer,
           const training_options& options) {
  context_check::blocking("train", strategy);
  check_variables(strategy);
  sync_replicas_optimizer::check_trained(strategy, options.variables);
  if (strategy.layout().group)
    throw_failure(errc::unimplemented,
                  "a {} strategy of several processes has no chief; call `train` without a "
                  "sync_replicas_optimizer, or use a parameter_server strategy",
                  strategy.layout().name);
  check_options(options);
  require(options.check_replicas_every == 0,
          "check_replicas_every has no meaning where a chief applies updates: there are no copies "
          "that could differ; leave it out");
  auto expected_replicas = optimizer.options().total_num_replicas;
  if (strategy.num_replicas_in_sync() != expected_replicas)
    throw_failure(errc::invalid_argument,
                  "the strategy has {} replicas, the optimizer expects {}; make them agree",
                  strategy.num_replicas_in_sync(), expected_replicas);
  for (auto dead : options.dead_replicas)
    if (dead >= expected_replicas)
      throw_failure(errc::invalid_argument,
                    "dead_replicas names replica {}, but there are {} replicas", dead,
                    expected_replicas);
  if (options.min_replicas > 0)
    value_or_throw(check_min_replicas(options.min_replicas, optimizer.options()));
}

void check(const strategy& strategy, const training_options& options) {
  context_check::blocking("train", strategy);
  if (!strategy.layout().runs_replicas)
    throw_failure(errc::unimplemented,
                  "replicas of a {} strategy do not meet; give `train` a sync_replicas_optimizer",
                  strategy.layout().name);
  check_variables(strategy);
  check_options(options);
  const std::pair<bool, const char*> meaningless[]
    = {{!options.dead_replicas.empty(), "dead_replicas"},
       {options.ask_again_after > job_time{0}, "ask_again_after"},
       {options.min_replicas > 0, "min_replicas"},
       {options.rejoin_timeout > job_time{0}, "rejoin_timeout"},
       {options.stops_on_loss, "stops_on_loss"}};
  for (const auto& [is_set, name] : meaningless)
    if (is_set)
      throw_failure(errc::invalid_argument,
                    "{} has no meaning where every step needs all replicas; leave it out", name);
}

// The session of replicas that only make steps.
task<void> run_steps(training_session& session, step_function step) {
  while (!session.should_stop()) {
    auto running = session.run(step);
    co_await running;
  }
}

job_report tell_failure(const training_options& options, job_report report) {
  if (!report.failure) return report;
  if (options.on_failure)
    call_users_code("on_failure of a training", [&] { options.on_failure(*report.failure); });
  else
    std::fprintf(stderr, "training failed: %s\n", with_throw_site(*report.failure).c_str());
  return report;
}

} // namespace

job_report train(strategy& strategy, const sync_replicas_optimizer& optimizer,
                 const step_function& step, const training_options& options) {
  check_given("train", step);
  session_function body = [step](training_session& session) { return run_steps(session, step); };
  return train(strategy, optimizer, body, options);
}

job_report train(strategy& strategy, const sync_replicas_optimizer& optimizer,
                 const session_function& session, const training_options& options) {
  check_given("train", session);
  check(strategy, optimizer, options);
  const auto* placement = strategy.layout().placement;
  auto leads = placement == nullptr || placement->leads();
  auto run = leads ? run_as_leader : run_as_member;
  return tell_failure(options, run(strategy, optimizer, session, options));
}

job_report train(strategy& strategy, const step_function& step, const training_options& options) {
  check_given("train", step);
  check(strategy, options);
  return tell_failure(options, run_as_peer(strategy, step, options));
}

} // namespace troupe
