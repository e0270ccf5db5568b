// SPDX-License-Identifier: Apache-2.0
// Finds the folder of a run, and evaluates its checkpoints.
#include "tools/job/evaluator_role.hpp"

#include "actors/recording/seconds.hpp"
#include "messages/errors/failure.hpp"
#include "tools/job/evaluator.hpp"
#include "tools/job/job_cluster.hpp"
#include "tools/job/saved_values.hpp"
#include "tools/options/help.hpp"
#include "tools/run/restart.hpp"
#include "tools/run/run_directory.hpp"
#include "tools/system/standard_streams.hpp"

#include <cstdio>

namespace troupe {

std::optional<int> evaluator_role::prepare() {
  const auto& program = process_.request().program;
  auto& options = process_.request().options;
  process_.announce_cluster();
  auto misused = [&](const char* reason) {
    return refuse(program, error{errc::invalid_argument, reason});
  };
  auto attempt = find_attempt(options.run_dir, true, process_environment());
  if (!attempt) return refuse(program, attempt.error());
  options.run_dir = attempt->own;
  options.replicate_owners = 1; // an evaluator holds its variables itself
  if (options.run_dir.empty())
    return misused("an evaluator finds the run by its folder: give all tasks the same --run-dir");
  if (options.checkpoint_every == 0)
    return misused("an evaluator evaluates checkpoints, but --checkpoint-every 0 makes none: leave "
                   "it out");
  if (!process_.subject().evaluate)
    return misused("an evaluator has nothing to do here: this program evaluates nothing");
  process_.watch_signals();
  print_if_possible(stderr, "evaluates {}/{}\n", options.run_dir, run_directory::checkpoint_folder);
  return std::nullopt;
}

job_report evaluator_role::train(troupe::strategy& strategy, const job_optimizer& /*optimizer*/,
                                 const step_function& /*step*/) {
  const auto& options = process_.options();
  const auto& subject = process_.subject();
  auto evaluate = [&](const found_checkpoint& found) {
    if (subject.can_evaluate) value_or_throw(subject.can_evaluate(found));
    auto values = value_or_throw(values_in(found.snapshot, strategy.variables()));
    return value_or_throw(subject.evaluate(values));
  };
  auto report = run_evaluator(
    {.program = process_.request().program,
     .run = options.run_dir,
     .chief = chief_text(process_.cluster()),
     .evaluate = evaluate,
     .measure = subject.measure,
     .last_step = process_.steps(),
     .start_deadline = process_.request().command.server.start_deadline,
     .timeout = to_job_time(2 * options.deadline_seconds + options.rejoin_timeout_seconds),
     .stop = process_.signals().token()});
  print_if_possible(stderr, "{}: {}\n", process_.request().program, end_text(report));
  code_ = code_of(report, process_.signals().signal_number());
  return {.step = report.last_step.value_or(0), .failure = report.failure};
}

int evaluator_role::conclude(const std::optional<error>& thrown) {
  if (code_) return *code_;
  if (!thrown) return static_cast<int>(exit_code::finished);
  return refuse(process_.request().program, *thrown, code_before_training(thrown->code));
}

} // namespace troupe
