// SPDX-License-Identifier: Apache-2.0
// The life of a replica in a training job, and how it begins.
#pragma once

#include "actors/interfaces/interfaces.hpp"
#include "strategies/contexts/training_cast.hpp"
#include "strategies/jobs/training.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// How a replica begins.
struct beginning {
  uint64_t first_step = 0;
  std::optional<replica_progress> saved; ///< What it was at when the job was saved.
  uint64_t life = 0;                     ///< How often its node was gone before.
};

/// Where a replica of a job stands, and beside how many others.
struct replica_site {
  bool is_here = true;                       ///< Whether it is spawned in this process.
  uint32_t process = 0;                      ///< By position.
  uint32_t replicas_here = 0;                ///< That come, in that process.
  std::shared_ptr<replicas_at_work> at_work; ///< Of those; of one process, one for all.
};

/// Has all replicas of a job enter its placement. @returns Where each stands, by index.
/// Errors: throws `failure`, as `placement::enter`.
[[nodiscard]] std::vector<replica_site> enter_replicas(const strategy& strategy,
                                                       const training_options& options);

/// What all replicas of a job do. Theirs as long as one of them lives.
struct replica_script {
  sync_replicas_optimizer optimizer;
  session_function body;
  decltype(training_options::pace) pace;
};

/// What all replicas of a job that stand in one process have in common. The strategy and the
/// options outlive them.
struct replica_company {
  troupe::strategy& strategy;
  const training_options& options;
  std::shared_ptr<const replica_script> script;
  chief_actor chief; ///< Where there is no placement; else it is looked for.
  std::shared_ptr<const training_cast> cast;
  std::span<const replica_site> sites; ///< Of all replicas, by index.

  /// Puts a replica on stage, here. Errors: throws `failure`, as `placement::see`.
  [[nodiscard]] replica_actor spawn(uint32_t index, beginning from) const;
};

/// Whether a replica never comes.
[[nodiscard]] bool is_dead(const training_options& options, uint32_t replica);

/// What is saved of a replica, if anything.
[[nodiscard]] std::optional<replica_progress> saved_of(std::span<const replica_progress> saved,
                                                       uint32_t replica);

/// What links and replicas of a job may go through.
[[nodiscard]] job_links links_of(const strategy& strategy, const training_options& options);

/// What a job trains.
[[nodiscard]] std::vector<variable> trained_variables(const strategy& strategy,
                                                      const training_options& options);

/// A job goes on where the one before it left the variables: after so many updates.
[[nodiscard]] uint64_t updates_made(strategy& strategy, std::span<const variable> variables);

} // namespace troupe
