// SPDX-License-Identifier: Apache-2.0
// Runs a job in one process, from finding its cluster to its exit code.
#pragma once

#include "strategies/jobs/training.hpp"
#include "tools/job/job_optimizer.hpp"
#include "tools/job/job_process.hpp"
#include "tools/job/job_role.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace troupe {

/// Runs a program's body in a process of a job, in the role that the cluster gives it.
/// Thread: the one that made it.
class running_job final : public job_process {
public:
  using job_process::job_process;

  /// Begins the only run. @returns The exit code if the job has run before.
  [[nodiscard]] std::optional<int> begin();

  /// Runs the body, with everything around it; one job of a process at a time. @pre `begin`.
  /// @returns The exit code of the process.
  [[nodiscard]] int run(const std::function<void()>& body);

  // ---- for the body ----

  /// Refuses a call outside of the body. @param call Names the function: "strategy()".
  /// Errors: throws `failure` with failed_precondition.
  void require_body(std::string_view call) const;

  /// Trains once. Errors: in the report; throws `failure` if the job did not begin, or with
  /// failed_precondition if it has trained already.
  job_report train(troupe::strategy& strategy, const job_optimizer& optimizer,
                   const step_function& step);

private:
  [[nodiscard]] std::unique_ptr<job_role> make_role();
  [[nodiscard]] std::optional<int> prepare_role();
  [[nodiscard]] std::optional<error> call(const std::function<void()>& body);

  bool has_begun_ = false;
  bool is_in_body_ = false;
  std::unique_ptr<job_role> role_; ///< Once the process is prepared.
};

} // namespace troupe
