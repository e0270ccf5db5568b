// SPDX-License-Identifier: Apache-2.0
// The figures that plots show of one experiment, collected while it runs.
#pragma once

#include "simulation/experiment.hpp"
#include "simulation/reports/arrival_profile.hpp"
#include "simulation/reports/replica_spans.hpp"
#include "simulation/reports/work_account.hpp"

#include <optional>
#include <vector>

namespace troupe {

/// A point of a distribution: this share of all steps took no longer.
struct share_of_steps {
  double share = 0;
  double seconds = 0;
};

/// A distribution in a few hundred points, from the shortest with a share of 0 on: all of them, if
/// there are no more; else at even shares, and closer and closer towards the longest.
/// @param step_seconds In any order.
[[nodiscard]] std::vector<share_of_steps> distribution_of(std::vector<double> step_seconds);

/// Figures of an experiment for its plots: small, whatever the experiment was.
struct profile_figures {
  std::vector<share_of_steps> step_times; ///< Without warm-up, as what follows but `spans`.
  double step_p10 = 0;
  double step_p50 = 0;
  double step_p90 = 0;
  std::vector<arrival_figures> arrivals;
  work_totals work;
  std::vector<replica_work> replicas;
  std::optional<replica_spans> spans; ///< The first run's, if it was asked for.
};

/// Collects from every step record of an experiment, run after run. Memory: 8 bytes a step,
/// `arrival_profile`, a few numbers a replica, and the spans of `cells_max` gradients.
class run_profile {
public:
  /// @param with_spans Whether to keep what replicas did when, for some steps after the warm-up.
  run_profile(const experiment& experiment, bool with_spans);

  /// Takes in one step.
  void add(const step_record& step);

  /// Takes in a message between nodes, where spans are kept and messages take time.
  void add(const delivery& delivery);

  /// All figures. @pre All steps are in.
  [[nodiscard]] profile_figures figures();

  /// The window has at most so many gradients, ...
  static constexpr uint64_t cells_max = 200'000;
  static constexpr uint64_t window_gradients_max = 120; ///< ... of each replica, ...
  static constexpr uint64_t window_steps_max = 2000;    ///< ... and steps.

private:
  uint64_t warm_up_;
  job_time last_ended_{0};
  bool is_first_run_ = true;
  std::vector<double> step_seconds_;
  arrival_profile arrivals_;
  work_account work_;
  std::optional<replica_spans> spans_;
};

} // namespace troupe
