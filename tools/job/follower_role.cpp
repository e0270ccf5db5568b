// SPDX-License-Identifier: Apache-2.0
// Trains, and reads with the leader what only both can read.
#include "tools/job/follower_role.hpp"

#include "messages/errors/failure.hpp"
#include "tools/job/job_end.hpp"
#include "tools/options/help.hpp"
#include "tools/system/standard_streams.hpp"

#include <cstdio>

namespace troupe {

std::optional<int> follower_role::prepare() {
  process_.watch_signals();
  process_.announce_cluster();
  return std::nullopt;
}

job_report follower_role::train(troupe::strategy& strategy, const job_optimizer& optimizer,
                                const step_function& step) {
  report_ = train_with(strategy, optimizer, step, process_.common_training_options());
  throw_unless_begun(*report_);
  if (process_.subject().evaluate) read_with_leader(strategy, *report_);
  return *report_;
}

// The leader reads all variables after the last step, unless that step was evaluated. To read a
// variable with parts in all processes, all of them make the call.
void follower_role::read_with_leader(troupe::strategy& strategy, job_report& report) const {
  const auto period = process_.options().evaluate_every;
  auto was_evaluated = period > 0 && report.step % period == 0;
  if (was_evaluated || report.failure || !strategy.layout().group) return;
  try {
    for (const auto& variable : strategy.variables())
      if (variable.synchronization() == variable_synchronization::on_read)
        static_cast<void>(strategy.read(variable));
  } catch (const failure& failed) {
    report.failure = failed.reason();
  }
}

int follower_role::conclude(const std::optional<error>& thrown) {
  const auto& program = process_.request().program;
  if (!report_) return code_without_training(thrown);
  if (auto line = early_end(program, *report_, process_.steps()); !line.empty())
    print_if_possible(stderr, "{}\n", line);
  if (thrown && !report_->failure) return refuse(program, *thrown, exit_code_of(thrown->code));
  // A worker that the job can do without has left it as it was asked to.
  auto may_leave
    = process_.options().min_replicas > 0 && process_.cluster().self().type == "worker";
  return code_of(*report_, may_leave ? 0 : process_.signals().signal_number());
}

} // namespace troupe
