// SPDX-License-Identifier: Apache-2.0
// The parts of a job that depend on its model and data.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "messages/errors/errc.hpp"
#include "tools/run/plots.hpp"
#include "tools/run/quality_measure.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe {

struct found_checkpoint;

/// A job, its checkpoints, its files and its evaluator work alike for every model. This struct has
/// the parts that differ; each may be left out.
struct job_subject {
  std::string announcement; ///< Lines for people, before the job begins.
  uint64_t steps = 0;       ///< Updates to make; 0: as --steps says.

  quality_measure measure = quality_measures::loss;
  /// Evaluates variables, in order of creation, on held-out data, in the units of `measure`; empty:
  /// they are not evaluated.
  std::function<expected<double>(std::span<const tensor>)> evaluate{};
  std::string others{}; ///< Lines below the result: those of simple methods.
  std::vector<plot_baseline> baselines{};

  std::map<std::string, std::string> notes{}; ///< Notes in checkpoints, beside the job.
  /// Whether a job may go on with a checkpoint; the folder's name stands before the reason.
  /// Empty: if it is of the same variables, optimizer and seed.
  std::function<expected<void>(const found_checkpoint&)> can_resume{};
  /// Whether an evaluator may evaluate a checkpoint. Empty: if it is of the same variables.
  std::function<expected<void>(const found_checkpoint&)> can_evaluate{};

  std::string agreement{}; ///< A line that must be the same in all processes, beside the options.
  std::vector<std::string> own_options{}; ///< Keys of options that may differ between processes.
};

} // namespace troupe
