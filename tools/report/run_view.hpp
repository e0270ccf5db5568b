// SPDX-License-Identifier: Apache-2.0
// Adds up the content of a run's page, step by step, in bounded memory.
#pragma once

#include "actors/recording/records.hpp"
#include "actors/recording/summary.hpp"
#include "tools/report/folding_table.hpp"
#include "tools/report/step_series.hpp"
#include "tools/report/straggler_map.hpp"

#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

namespace troupe {

/// A line that the run printed beside its progress.
struct run_notice {
  uint64_t step = 0; ///< The last step before it.
  std::string text;
};

/// Everything that the page draws, of a run that goes on or of one that is over: both add it step
/// by step. Its memory does not grow with the number of steps, and hardly with that of replicas.
/// Thread: one owner at a time.
class run_view {
public:
  static constexpr size_t rows_max = straggler_map::rows_max; ///< Rows of replicas in tables.
  static constexpr size_t ranks_max = 64;                     ///< Columns of the arrivals.
  static constexpr size_t waiting_max = 64;                   ///< Rows and columns of waits.
  static constexpr size_t notices_max = 50;                   ///< The newest so many are kept.

  /// Gives each replica of the job a row in all tables, also one that never gives a gradient.
  /// @param count Replicas of the job.
  void expect(uint32_t count);

  /// Adds a step. @pre Steps come in ascending order.
  void add(const step_record& step);

  /// Adds an evaluation of the held-out data. @param value In the measure of the run; one that is
  /// not finite counts for nothing.
  void add_evaluation(uint64_t step, double value);

  void add_notice(run_notice notice);

  /// Updates that were made before the first step that was added.
  [[nodiscard]] uint64_t first_step() const { return first_step_; }

  /// When the first added step began, on the job's clock.
  [[nodiscard]] job_time began() const { return began_; }

  [[nodiscard]] uint64_t step_count() const { return totals_.step_times().count(); }

  /// The last step; without its contributions.
  [[nodiscard]] const step_record& last() const { return last_; }

  [[nodiscard]] double last_loss() const { return last_loss_; }

  [[nodiscard]] const summary& totals() const { return totals_; }

  /// Mean losses of the steps, in the trainer's unit.
  [[nodiscard]] const step_series& losses() const { return losses_; }

  [[nodiscard]] const step_series& evaluations() const { return evaluations_; }

  [[nodiscard]] double last_evaluation() const { return last_evaluation_; }

  /// Units: seconds.
  [[nodiscard]] const step_series& step_seconds() const { return step_seconds_; }

  [[nodiscard]] const straggler_map& slow_downs() const { return slow_downs_; }

  /// [replica][k]: how often its gradient was the k-th that a step took, counted from 0.
  [[nodiscard]] const folding_table& arrivals() const { return arrivals_; }

  /// [replica][other]: seconds that the replica waited for the other to complete a step.
  [[nodiscard]] const folding_table& waits() const { return waits_; }

  /// [replica]: the last step that a gradient of it is part of, or came too late for; 0: none.
  [[nodiscard]] const std::vector<uint64_t>& last_steps() const { return last_steps_; }

  [[nodiscard]] const std::deque<run_notice>& notices() const { return notices_; }

private:
  void make_rows(size_t count);
  void add_gradients(const step_record& step);

  uint64_t first_step_ = 0;
  job_time began_{0};
  step_record last_;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  double last_evaluation_ = std::numeric_limits<double>::quiet_NaN();
  summary totals_;
  step_series losses_;
  step_series evaluations_;
  step_series step_seconds_;
  straggler_map slow_downs_;
  folding_table arrivals_{rows_max, ranks_max};
  folding_table waits_{waiting_max, waiting_max};
  std::vector<uint64_t> last_steps_;
  std::deque<run_notice> notices_;
};

} // namespace troupe
