// SPDX-License-Identifier: Apache-2.0
// The other processes of a job with a chief, as the chief's process knows them.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "actors/net/placement.hpp"
#include "actors/training/roll_call.hpp"
#include "actors/world/completion.hpp"
#include "actors/world/world.hpp"
#include "strategies/jobs/observed_tasks.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// The members of a job, from the roll call, at which they enter, until they leave.
/// Thread: the one that made the world, but for `tell_end`.
class job_members {
public:
  /// Calls the roll. @param world, placement Outlive this object. @param config Its world, and all
  /// functions but `on_here`, are set here. Errors: throws `failure`, as `placement::enter`.
  job_members(world& world, placement& placement, roll_call_config config);

  /// If they have not left, they are told that the chief's process gave the job up.
  ~job_members();

  job_members(const job_members&) = delete;
  job_members& operator=(const job_members&) = delete;

  /// Waits until the job may begin. Errors: why it cannot.
  [[nodiscard]] expected<roll_called> entered() { return entered_.wait(world_); }

  /// They begin. @param first_step Updates made before. @param replicas If the job goes on from a
  /// checkpoint.
  void begin(uint64_t first_step, const std::vector<replica_progress>& replicas);

  /// Has a function told of each lost member, those lost before included. An empty one ends that.
  void on_loss(std::function<void(uint32_t member, const error& reason)> told);

  /// The job is over for them, too. Thread: any.
  void tell_end(const job_ending& ending);

  /// Waits until they have left, and are not members any more.
  /// @returns Why the job failed for all, if it did.
  [[nodiscard]] std::optional<error> leave(const job_ending& ending);

  /// Whether they have left.
  [[nodiscard]] bool are_gone() const { return !roll_; }

private:
  class losses;

  void watch_roll_call();

  world& world_;
  roll_call_actor roll_; ///< Null, if they have left.
  completion<roll_called> entered_;
  completion<job_ending> left_;
  std::shared_ptr<losses> losses_;
};

} // namespace troupe
