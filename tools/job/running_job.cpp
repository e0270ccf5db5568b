// SPDX-License-Identifier: Apache-2.0
// Gives a process its role, and runs the program's body between the parts of the role.
#include "tools/job/running_job.hpp"

#include "messages/errors/throw_failure.hpp"
#include "tools/job/evaluator_role.hpp"
#include "tools/job/follower_role.hpp"
#include "tools/job/leader_role.hpp"
#include "tools/options/help.hpp"

#include <atomic>
#include <exception>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

std::atomic_flag is_job_running;

/// A run of a job. Signals ask a process to end, not a job: so one job runs at a time, and its
/// watch of signals ends with it.
class sole_run {
public:
  explicit sole_run(std::optional<signal_watch>& signals)
    : signals_(signals), is_sole_(!is_job_running.test_and_set()) {}

  ~sole_run() {
    if (!is_sole_) return;
    signals_.reset();
    is_job_running.clear();
  }

  sole_run(const sole_run&) = delete;
  sole_run& operator=(const sole_run&) = delete;

  [[nodiscard]] bool is_sole() const { return is_sole_; }

private:
  std::optional<signal_watch>& signals_;
  bool is_sole_;
};

} // namespace

std::optional<int> running_job::begin() {
  if (!std::exchange(has_begun_, true)) return std::nullopt;
  return refuse(request().program,
                error{errc::failed_precondition, "a job runs once: make another job to run again"});
}

int running_job::run(const std::function<void()>& body) {
  const auto& program = request().program;
  sole_run sole{signals_};
  if (!sole.is_sole())
    return refuse(program, error{errc::failed_precondition,
                                 "another job runs in this process: run this one after it"});
  ignore_write_signals();
  if (auto prepared = prepare(); !prepared) return refuse(program, prepared.error());
  role_ = make_role();
  if (auto refused = prepare_role()) return *refused;
  auto thrown = call(body);
  leave_cluster();
  return role_->conclude(thrown);
}

std::unique_ptr<job_role> running_job::make_role() {
  if (cluster().is_chief()) return std::make_unique<leader_role>(*this);
  if (cluster().is_evaluator()) return std::make_unique<evaluator_role>(*this);
  return std::make_unique<follower_role>(*this);
}

// @returns The exit code, if the role cannot begin.
std::optional<int> running_job::prepare_role() {
  try {
    return role_->prepare();
  } catch (const std::runtime_error&) { // no descriptor or no thread is left
    auto reason = reason_of(std::current_exception());
    return refuse(request().program, reason, exit_code_of(reason.code));
  }
}

// @returns Why the body threw, if it did.
std::optional<error> running_job::call(const std::function<void()>& body) {
  std::optional<error> thrown;
  is_in_body_ = true;
  try {
    body();
  } catch (...) {
    thrown = reason_of(std::current_exception());
  }
  is_in_body_ = false;
  return thrown;
}

void running_job::require_body(std::string_view call) const {
  if (is_in_body_) return;
  throw_failure(errc::failed_precondition, "job: {} {} run: call it in the function given to run",
                call, has_begun_ ? "after" : "before");
}

job_report running_job::train(troupe::strategy& strategy, const job_optimizer& optimizer,
                              const step_function& step) {
  if (role_->has_trained()) throw_failure(errc::failed_precondition, "a job trains once");
  check_other(strategy);
  return role_->train(strategy, optimizer, step);
}

} // namespace troupe
