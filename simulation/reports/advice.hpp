// SPDX-License-Identifier: Apache-2.0
// Advice on the number of backups and the policy, found by simulations.
#pragma once

#include "simulation/experiment.hpp"
#include "simulation/reports/iteration_curve.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace troupe {

/// The question: which experiment, and which choices.
struct advice_question {
  experiment base;                   ///< How replicas compute, and how long to look.
  std::vector<sync_policy> policies; ///< To choose from; at least one.
  iteration_curve iterations;        ///< Steps to the goal.
  /// Whether backups are bought: N stays as in `base`, and replicas are added. Else the replicas
  /// stay as in `base`, and some of them become backups.
  bool buys = false;
};

/// One number of backups under one policy.
struct advice_candidate {
  sync_policy policy = sync_policy::tensorflow;
  uint32_t backups = 0;
  uint32_t needed = 0;   ///< N.
  uint32_t replicas = 0; ///< n.
  experiment_report report;
  double time = 0; ///< To the goal; that of the baseline is 1.
  double cost = 0; ///< Replica-seconds to the goal; those of the baseline are 1.
  /// Difference of the cost from the baseline's, as a share of it; batch by batch, of the same
  /// draws.
  interval_estimate difference;
};

/// The candidates, and the best of them.
struct advice {
  std::vector<advice_candidate> tried; ///< They made all their steps; by policy, then backups.
  size_t baseline = 0;                 ///< Index in `tried`: as many backups as replicas are dead.
  size_t best = 0;                     ///< Index in `tried`: the lowest cost.
  std::vector<size_t> best_of_policy;  ///< Indices in `tried`, in the order of the question.

  /// Whether the best is better than the baseline with more certainty than chance gives.
  [[nodiscard]] bool is_worth_it() const;

  /// Index in `tried` of the lowest cost with more backups than the baseline has.
  [[nodiscard]] std::optional<size_t> best_with_more() const;

  /// The fewest and the most backups of the best policy that cost at most 1 % more than the best.
  [[nodiscard]] std::pair<uint32_t, uint32_t> nearly_best() const;
};

/// Runs an experiment. Called with one candidate after the other of each policy, and on
/// `experiment::threads` threads at a time.
using experiment_runner = std::function<experiment_report(const experiment&)>;

/// Looks for the number of backups with the lowest cost, under each policy: first 0, 1, 2, 4, ...
/// more than replicas are dead, and the most there can be, then between the neighbours of the best.
/// All candidates are of the same draws. Without buying, the lowest cost is also the shortest time.
/// Candidates that the curve of iterations does not know are left out.
/// @returns Nothing if no candidate makes its steps. Errors: throws `failure` with out_of_range, if
/// the curve does not say how many steps it takes without backups; with invalid_argument, if it
/// says none or infinitely many.
[[nodiscard]] std::optional<advice> advise(const advice_question& question,
                                           const experiment_runner& run);

} // namespace troupe
