// SPDX-License-Identifier: Apache-2.0
// The parts that the roles of a job have in common.
#include "tools/job/job_role.hpp"

#include "messages/errors/failure.hpp"
#include "tools/job/job_end.hpp"
#include "tools/job/waiting_step.hpp"

namespace troupe {

job_report job_role::train_with(troupe::strategy& strategy, const job_optimizer& optimizer,
                                const step_function& step, const training_options& options) const {
  auto chosen_step = process_.options().arithmetic == arithmetic_kind::done
                       ? step
                       : waiting_step(optimizer, strategy.trainable_variables());
  if (const auto* sync = optimizer.as<sync_replicas_optimizer>())
    return troupe::train(strategy, *sync, chosen_step, options);
  return troupe::train(strategy, chosen_step, options);
}

void job_role::throw_unless_begun(const job_report& report) {
  if (!report.has_begun)
    throw failure{report.failure.value_or(error{errc::cancelled, "asked to stop"})};
}

int job_role::code_without_training(const std::optional<error>& thrown, bool restores) const {
  if (!thrown) return static_cast<int>(exit_code::finished);
  return refuse_job(process_.request().program, *thrown, process_.cluster(),
                    process_.signals().signal_number(),
                    code_before_training(thrown->code, restores));
}

exit_code job_role::code_before_training(errc failure, bool restores) {
  if (failure == errc::user_code || failure == errc::resource) return exit_code_of(failure);
  return restores ? exit_code::bad_checkpoint : exit_code::usage;
}

} // namespace troupe
