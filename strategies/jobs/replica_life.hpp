// SPDX-License-Identifier: Apache-2.0
// The life of a replica in a training job, and how it begins.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/jobs/training.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

/// Shared by the replicas of a job. The referenced objects outlive the replicas.
struct replica_surroundings {
  troupe::strategy& strategy;
  const training_options& options;
  const sync_replicas_optimizer& optimizer;
  const session_function& session;
  std::shared_ptr<const job_actors> actors;
  chief_actor chief;                   ///< Null where a placement is to find the chief.
  std::vector<replica_progress> saved; ///< Progress at the checkpoint that the job goes on from.
  std::stop_token leave;               ///< Once asked for, this process's replicas leave.
};

/// Where a replica stands, and beside how many others.
struct replica_site {
  bool is_here = true;                       ///< Whether it is spawned in this process.
  uint32_t process = 0;                      ///< The position of its process.
  uint32_t replicas_here = 0;                ///< How many replicas come in that process.
  std::shared_ptr<replicas_at_work> at_work; ///< Shared by the replicas of that process.
};

/// Has all replicas of a job enter its placement. @returns Their sites, by index.
/// Errors: throws `failure`, as `placement::enter`.
[[nodiscard]] std::vector<replica_site> enter_replicas(const strategy& strategy,
                                                       const training_options& options);

struct replica_script;

/// The replicas of a job that has a chief, as one of its processes deals with them.
class job_replicas {
public:
  /// @param sites One for each replica, by index.
  job_replicas(replica_surroundings surroundings, std::vector<replica_site> sites);

  /// The replicas that come in this process, by index.
  [[nodiscard]] std::vector<uint32_t> here() const;

  /// The replicas of another process, those that never come included.
  [[nodiscard]] std::vector<uint32_t> away_in(uint32_t process) const;

  /// Spawns a replica in this process.
  /// @param life How often its node was gone, or late, before: with 0 it begins where the job does.
  /// Errors: throws `failure`, as `placement::see`.
  replica_actor spawn(uint32_t index, uint64_t life);

  /// The replicas spawned so far, if the job has a placement.
  [[nodiscard]] const std::vector<replica_actor>& spawned() const { return spawned_; }

  /// Ends the spawned replicas.
  void kill() const;

private:
  replica_surroundings surroundings_;
  std::shared_ptr<const replica_script> script_;
  std::vector<replica_site> sites_;
  std::vector<replica_actor> spawned_;
};

/// Whether a replica never comes.
[[nodiscard]] bool is_dead(const training_options& options, uint32_t replica);

/// Whether messages of a job may come twice, and whether its replicas may be lost and come back.
[[nodiscard]] job_links links_of(const strategy& strategy, const training_options& options);

/// The lines that all processes of a job with a chief must have alike, as the roll call compares
/// them: those of the options, then one for each variable of the strategy, in order of creation:
/// "variable 'line' = f32 [2]".
[[nodiscard]] std::string job_agreement(const strategy& strategy, const training_options& options);

/// The variables that a job trains.
[[nodiscard]] std::vector<variable> trained_variables(const strategy& strategy,
                                                      const training_options& options);

/// The variables that an evaluation reads.
[[nodiscard]] std::vector<variable> evaluated_variables(const strategy& strategy,
                                                        const training_options& options);

/// A job goes on where the one before it left the variables: after so many updates.
[[nodiscard]] uint64_t updates_made(strategy& strategy, std::span<const variable> variables);

} // namespace troupe
