// SPDX-License-Identifier: Apache-2.0
// The evaluator of a run: another process, which sees nothing of it but its folder.
#pragma once

#include "strategies/jobs/sidecar_evaluator.hpp"
#include "tools/train/learning_problem.hpp"
#include "tools/train/train_options.hpp"

#include <filesystem>
#include <stop_token>
#include <string>

namespace troupe {

/// What an evaluator has from elsewhere.
struct evaluator_surroundings {
  const learning_problem& problem;
  std::filesystem::path run; ///< The folder of the run, which may not have begun yet.
  std::string chief;         ///< The task that leads it, for people: "chief 0 (10.0.0.1:2222)".
  job_time start_deadline;   ///< How long the run may take to begin.
  std::stop_token stop{};
};

/// What came of it.
struct evaluator_report : sidecar_report {
  bool has_begun = false; ///< There was a run.
};

/// Evaluates each checkpoint of a run with the held-out data, as soon as it is saved, until the run
/// is over: a line for each on standard error, and in the folder `eval` of the run an
/// evaluations.csv and a curve. One that is started again goes on after the last line.
///
/// Patience ends when no file of the run has grown for as long as a step may take, twice over.
/// @param options As those of the run.
/// Errors: in the report: deadline_exceeded, naming the chief; failed_precondition if the run is of
/// another text or model; resource.
[[nodiscard]] evaluator_report run_evaluator_job(const train_options& options,
                                                 const evaluator_surroundings& given);

} // namespace troupe
