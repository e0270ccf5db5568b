// SPDX-License-Identifier: Apache-2.0
// The main job: the language model, trained synchronously by replicas in one world.
#pragma once

#include "actors/job_report.hpp"
#include "tools/run_recorder.hpp"
#include "tools/text_corpus.hpp"
#include "tools/train_options.hpp"

#include <cstdint>
#include <stop_token>

namespace troupe {

/// What came of a job.
struct train_result {
  job_report report;
  double bits_per_byte = 0; ///< Of the held-out text, with the variables as they are at the end.
};

/// How many updates the options ask for. An epoch is as many accepted examples as the training text
/// has bytes.
[[nodiscard]] uint64_t step_count(const train_options& options, const text_corpus& corpus);

/// Trains the model and evaluates it. Everything that happens on the way goes to `recorder`.
/// @param stop Ends the training early; the evaluation still takes place.
/// Errors: in the report; throws `failure` with invalid_argument for options that no job can have.
[[nodiscard]] train_result run_train_job(const train_options& options, const text_corpus& corpus,
                                         run_recorder& recorder, std::stop_token stop);

/// The names of the model's variables, in order.
[[nodiscard]] std::vector<std::string> variable_names(const train_options& options);

} // namespace troupe
