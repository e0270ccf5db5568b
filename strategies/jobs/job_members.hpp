// SPDX-License-Identifier: Apache-2.0
// The other processes of a job, as that of its chief deals with them.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/interfaces/job_report.hpp"
#include "actors/world/world.hpp"
#include "messages/payload.hpp"
#include "strategies/contexts/strategy.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace troupe {

/// A job of several processes begins when all are there, and ends for all alike. In a job of one
/// process, there is none to wait for.
///
/// Thread: the one that made the world.
class job_members {
public:
  /// @param strategy Outlives it.
  explicit job_members(strategy& strategy);

  job_members(const job_members&) = delete;
  job_members& operator=(const job_members&) = delete;

  /// Tells members that there is no job, if they were not told more.
  ~job_members();

  /// Whether there are members.
  [[nodiscard]] bool has_any() const { return roll_ != nullptr; }

  /// Waits until all are there, and sets the clock to the greatest of theirs.
  /// @param agreement As in `training_options`.
  /// Errors: deadline_exceeded and unavailable, naming the missing ones; failed_precondition, if
  /// one was started for another job; cancelled, if `stop` is asked to stop.
  [[nodiscard]] expected<void> gather(const std::string& agreement, const std::stop_token& stop);

  /// Tells members that the job begins, and where replicas were if it goes on from a checkpoint.
  void begin(uint64_t first_step, std::span<const replica_progress> replicas);

  /// Has `told` called when a member is lost while the job goes on; an empty function ends that.
  void on_loss(std::function<void(uint32_t member, const error& reason)> told);

  /// Tells members how the job has ended, and waits until all have left.
  /// @returns The report, with how it ended for all.
  [[nodiscard]] job_report end(job_report report);

private:
  struct answers;

  void watch_roll_call();
  void tell_ending(const job_report& report);

  strategy& strategy_;
  roll_call_actor roll_; ///< Null, if there are no members.
  std::shared_ptr<answers> answers_;
};

} // namespace troupe
