// SPDX-License-Identifier: Apache-2.0
// The evaluator of a run: a process of its own, which sees only the folder of the run.
#pragma once

#include "strategies/jobs/sidecar_evaluator.hpp"
#include "tools/run/quality_measure.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

namespace troupe {

/// The run that an evaluator evaluates, and the evaluation.
struct evaluator_options {
  std::string program;       ///< Begins its lines: "troupe train".
  std::filesystem::path run; ///< The folder of the run, which may not have begun yet.
  std::string chief;         ///< The task that leads it, for people: "chief 0 (10.0.0.1:2222)".
  std::function<double(const found_checkpoint&)> evaluate; ///< An exception ends the evaluator.
  quality_measure measure = quality_measures::loss;
  uint64_t last_step = 0;     ///< The last step of the run.
  job_time start_deadline{0}; ///< How long the run may take to begin.
  job_time timeout{0};        ///< How long the run's files may not grow, beside a delay of 10 s.
  std::stop_token stop{};
};

/// The end of an evaluator.
struct evaluator_report : sidecar_report {
  bool has_begun = false; ///< Whether the run has begun.
};

/// Evaluates each checkpoint of a run as soon as it is saved, until the run is over. Prints a line
/// for each on standard error, and writes evaluations.csv and a curve into the folder `eval` of the
/// run. An evaluator that is started again goes on after the last line of that file. It gives up
/// when no file of the run has grown for `timeout`.
/// Errors: in the report: deadline_exceeded, naming the chief; unavailable, if the run was given up
/// before it had made a step; resource; the failure that `evaluate` threw.
[[nodiscard]] evaluator_report run_evaluator(const evaluator_options& options);

/// The last line of an evaluator.
[[nodiscard]] std::string end_text(const evaluator_report& report);

/// The exit code of its process. @param signal_number The signal that asked it to stop; 0: none.
[[nodiscard]] int code_of(const evaluator_report& report, int signal_number);

} // namespace troupe
