// SPDX-License-Identifier: Apache-2.0
// The hooks of a job, called in order.
#pragma once

#include "strategies/optimizers/session_hook.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace troupe {

/// Hooks are the code of users and may throw. After the beginning, the list keeps the first
/// exception of a hook, and ends the job. A hook that has thrown is told of nothing more but the
/// end, while steps that are under way come to theirs; the others, which may save what the job has
/// come to, are told of all. Thread: any, one at a time.
class hook_list {
public:
  hook_list(std::vector<std::shared_ptr<session_hook>> hooks, session_control control)
    : hooks_(std::move(hooks)), control_(std::move(control)) {}

  /// Errors: throws what a hook throws.
  void begin(session_plan& plan);

  /// Calls a function that the job was given, as if it were a hook's.
  /// @param name Names the function in errors: "on_step".
  /// @param callee Stands for the function, which is not called again once it has thrown; null: it
  /// is.
  void call(const char* name, const void* callee, const std::function<void()>& function);

  void after_create_session();
  void on_open_step(const open_step& step);
  void after_step(const step_record& step);
  [[nodiscard]] bool wants_snapshot(uint64_t step, job_time now, bool last);
  void after_snapshot(const job_snapshot& snapshot);
  void on_trouble(const std::string& trouble);
  void on_flight_records(const flight_records& records);
  void end(const job_report& report);

  /// The error that the first failed hook threw; nothing if none has failed.
  [[nodiscard]] std::optional<error> failure() const;

private:
  template <class Function>
  void tell_each(const Function& tell);

  [[nodiscard]] bool has_failed(const void* callee) const;

  /// Asks the job to stop, if this is the first failure. @returns Whether it is.
  [[nodiscard]] bool remember(const void* callee, const char* name, error reason);

  std::vector<std::shared_ptr<session_hook>> hooks_;
  session_control control_;
  mutable std::mutex mutex_;
  std::optional<error> failure_;   ///< The first one.
  std::set<const void*> failed_{}; ///< Hooks, and functions by their address, that have thrown.
};

} // namespace troupe
