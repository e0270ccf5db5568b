// SPDX-License-Identifier: Apache-2.0
// A process that evaluates the checkpoints of a job.
#pragma once

#include "tools/job/job_role.hpp"

namespace troupe {

/// Runs an evaluator (`run_evaluator`) where the other processes train.
class evaluator_role final : public job_role {
public:
  explicit evaluator_role(job_process& process) : job_role(process) {}

  [[nodiscard]] std::optional<int> prepare() override;

  [[nodiscard]] bool has_trained() const override { return code_.has_value(); }

  [[nodiscard]] job_report train(troupe::strategy& strategy, const job_optimizer& optimizer,
                                 const step_function& step) override;
  [[nodiscard]] int conclude(const std::optional<error>& thrown) override;

private:
  std::optional<int> code_; ///< The evaluator's exit code, once it has evaluated.
};

} // namespace troupe
