// SPDX-License-Identifier: Apache-2.0
// The main job: a learning problem, worked on by the replicas of a strategy.
#pragma once

#include "actors/interfaces/job_report.hpp"
#include "actors/interfaces/job_snapshot.hpp"
#include "strategies/cluster/resolved_cluster.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/optimizers/session_hook.hpp"
#include "tools/run/run_recorder.hpp"
#include "tools/train/devices.hpp"
#include "tools/train/learning_problem.hpp"
#include "tools/train/train_options.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace troupe {

/// What came of a job.
struct train_result {
  job_report report;
  double quality = 0; ///< Of the held-out data, with the variables as they are at the end.
};

/// How many updates the options ask for. An epoch is as many accepted guesses as one pass over the
/// training data has.
[[nodiscard]] uint64_t step_count(const train_options& options, const learning_problem& problem);

/// Where a job runs.
struct train_cluster {
  const resolved_cluster& tasks;
  const server_options& server; ///< Its `replicas` do not count: those of the job do.
  train_devices devices{};
};

/// Takes part in a job that has its chief in another process.
/// Errors: in the report; throws `failure` as `server`, and with whatever keeps the job from
/// beginning.
[[nodiscard]] job_report follow_train_job(const train_options& options,
                                          const learning_problem& problem,
                                          const train_cluster& cluster,
                                          const std::stop_token& stop);

/// What a job has from elsewhere.
struct train_surroundings {
  const learning_problem& problem;
  train_cluster cluster;
  run_recorder& recorder;               ///< Told everything that happens on the way.
  std::filesystem::path checkpoints;    ///< Folder to save into.
  std::optional<job_snapshot> resume{}; ///< Where to go on.
  std::stop_token stop{}; ///< Ends the training early; the evaluation still takes place.
  std::vector<std::shared_ptr<session_hook>> onlookers{}; ///< Told first.
};

/// Trains the model and evaluates it.
/// Errors: in the report; throws `failure` with invalid_argument for options that no job can have,
/// as `train` for a snapshot of another job, as `server`.
[[nodiscard]] train_result run_train_job(const train_options& options,
                                         const train_surroundings& given);

} // namespace troupe
