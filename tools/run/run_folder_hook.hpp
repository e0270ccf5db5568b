// SPDX-License-Identifier: Apache-2.0
// The hook that writes the files of a run.
#pragma once

#include "actors/recording/evaluation_file.hpp"
#include "actors/recording/event_file.hpp"
#include "actors/recording/ledger_file.hpp"
#include "actors/recording/metrics_file.hpp"
#include "actors/recording/notice_file.hpp"
#include "actors/recording/step_timeline.hpp"
#include "actors/recording/summary.hpp"
#include "actors/recording/timeline_file.hpp"
#include "strategies/optimizers/session_hook.hpp"
#include "tools/options/job_options.hpp"
#include "tools/run/quality_measure.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class strategy;

/// The origin of a curve that this host begins to write now. @param elapsed The job's clock now.
[[nodiscard]] event_origin curve_origin(job_time elapsed);

/// Settings of a run's files.
struct run_folder_options {
  std::string program = "troupe"; ///< Named in the timeline and in warnings.
  uint64_t timeline_bytes_max = job_defaults::timeline_bytes;
  uint64_t ledger_bytes_max = job_defaults::ledger_bytes;
  job_time began{0}; ///< The job's clock at the beginning: more than 0 if the job was resumed.
  quality_measure measure = quality_measures::loss;
  /// Learning rate of the update that leads to a step, for its curve; empty: there is no curve.
  std::function<double(uint64_t step)> learning_rate{};
  /// Called once for each file that fails, with the line that notices.csv gets as well. Must not
  /// call the hook.
  std::function<void(const std::string&)> on_warning{};
};

/// After a job has ended, its files are all that is left of it. This hook writes metrics.csv,
/// evaluations.csv, ledger.csv, notices.csv, timeline.json and the curves for TensorBoard while the
/// job runs, and replicas.csv when it ends, and adds up the summary. A step brings records to the
/// disk if the last time was 5 seconds ago or more; a notice and trouble always do. So a process
/// that is killed loses records of the last seconds before its last step at most, and a job that
/// hangs loses none once it has said so.
///
/// A full disk must not end a training that has run for hours: a warning reports the first failure
/// of a file, which ends there. Thread: any; calls wait for each other.
class run_folder_hook final : public session_hook {
public:
  /// Creates the files. @param strategy Has all its variables: they name the tracks of the
  /// timeline.
  /// @param folder Is made if it is not there. Errors: throws `failure` with `resource`.
  run_folder_hook(const strategy& strategy, const std::filesystem::path& folder,
                  run_folder_options options = {});

  void after_step(const session_control& session, const step_record& step) override;

  /// Brings all records to the disk, since no further step may come.
  void on_trouble(const std::string& trouble) override;

  /// Finishes.
  void end(const job_report& report) override;

  /// Writes the result of evaluating the variables after `step`. Also after the end.
  void on_evaluation(uint64_t step, job_time when, double quality);

  /// Writes a line that the run has printed, and brings all records to the disk: it may be about a
  /// step that does not end. Also after the end, before `finish`.
  void keep_notice(std::string_view line);

  /// Writes everything to the disk, and then replicas.csv, which says that the run is over.
  void finish();

  /// Totals so far. @pre The run is over.
  [[nodiscard]] const summary& totals() const { return summary_; }

  static constexpr ptrdiff_t computing_times_min = 2000;

  /// Computing times of each replica, gradient by gradient: `times[replica][i]`. A long run keeps
  /// at least the last `computing_times_min`. @pre The run is over.
  [[nodiscard]] const std::vector<std::vector<job_time>>& computing_times() const {
    return computing_times_;
  }

  /// Whether there is a curve of the loss to draw: a trainer need not report any.
  /// @pre The run is over.
  [[nodiscard]] bool has_losses() const { return has_losses_; }

private:
  struct files {
    metrics_file metrics;
    evaluation_file evaluations;
    ledger_file ledger;
    notice_file notices;
    timeline_file timeline;
    event_file curves;
  };

  [[nodiscard]] static files create(const strategy& strategy, const std::filesystem::path& folder,
                                    const run_folder_options& options);
  void write_curves(const step_record& step);
  void keep_computing_times(const step_record& step);
  void warn_once(const expected<void>& written); ///< With the lock held.
  void flush_all();                              ///< With the lock held.
  void flush_if_due();

  std::mutex mutex_;
  std::filesystem::path folder_;
  run_folder_options options_;
  files files_;
  step_timeline events_;
  summary summary_;
  std::vector<std::vector<job_time>> computing_times_;
  uint64_t last_step_ = 0;
  std::chrono::steady_clock::time_point flushed_;
  bool has_losses_ = false;
  std::set<std::string> reported_failures_;
};

} // namespace troupe
