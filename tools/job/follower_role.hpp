// SPDX-License-Identifier: Apache-2.0
// A process that trains in a job that another one leads.
#pragma once

#include "tools/job/job_role.hpp"

namespace troupe {

/// Trains without a folder, and writes nothing.
class follower_role final : public job_role {
public:
  explicit follower_role(job_process& process) : job_role(process) {}

  [[nodiscard]] std::optional<int> prepare() override;

  [[nodiscard]] bool has_trained() const override { return report_.has_value(); }

  [[nodiscard]] job_report train(troupe::strategy& strategy, const job_optimizer& optimizer,
                                 const step_function& step) override;
  [[nodiscard]] int conclude(const std::optional<error>& thrown) override;

private:
  void read_with_leader(troupe::strategy& strategy, job_report& report) const;

  std::optional<job_report> report_; ///< Once the job has trained, or has failed to begin.
};

} // namespace troupe
