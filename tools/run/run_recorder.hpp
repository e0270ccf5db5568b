// SPDX-License-Identifier: Apache-2.0
// Everything that a run leaves behind and shows, fed by step records.
#pragma once

#include "actors/recording/evaluation_file.hpp"
#include "actors/recording/event_file.hpp"
#include "actors/recording/ledger_file.hpp"
#include "actors/recording/metrics_file.hpp"
#include "actors/recording/notice_file.hpp"
#include "actors/recording/step_timeline.hpp"
#include "actors/recording/summary.hpp"
#include "actors/recording/timeline_file.hpp"
#include "tools/options/train_options.hpp"
#include "tools/run/progress.hpp"
#include "tools/run/quality_measure.hpp"
#include "tools/run/run_directory.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe {

/// What a run recorder has to know of its run.
struct run_recorder_options {
  uint64_t step_count = 0;
  uint32_t replica_count = 0;
  std::vector<std::string> variables; ///< Names, for the tracks of the timeline.
  uint64_t timeline_bytes_max = train_defaults::timeline_bytes;
  job_time began{0}; ///< What the job's clock shows at first: more than 0 if it was resumed.
  std::function<double(uint64_t step)> learning_rate; ///< Of the update that leads to a step.
  quality_measure measure;
};

/// Writes metrics, evaluations, ledger, timeline and curves, keeps the progress line on standard
/// error, and adds up the summary. A full disk must not end a training that has run for hours: the
/// first failure of a file is told once, and its file ends there. What was recorded is on the disk
/// some seconds later, so that a process that is killed loses no more. Thread: any; calls wait for
/// each other.
class run_recorder {
public:
  /// Creates the files. Errors: `resource`.
  [[nodiscard]] static expected<std::unique_ptr<run_recorder>>
  create(const run_directory& directory, run_recorder_options options);

  /// One step was made.
  void on_step(const step_record& step);

  /// The held-out data were evaluated with the variables after `step`.
  void on_evaluation(uint64_t step, job_time when, double quality);

  /// A line for people, above the progress line, and a notice.
  void say(std::string_view line);

  /// A notice that is printed elsewhere: why the run ends.
  void keep_notice(std::string_view line);

  /// Brings everything to the disk, replicas.csv included, and ends the progress line.
  void finish();

  /// Totals so far. @pre The run is over.
  [[nodiscard]] const summary& totals() const { return summary_; }

  /// How long each replica computed, gradient by gradient: `times[replica][iteration]`.
  /// @pre The run is over.
  [[nodiscard]] const std::vector<std::vector<job_time>>& computing_times() const {
    return computing_times_;
  }

private:
  struct files {
    metrics_file metrics;
    evaluation_file evaluations;
    ledger_file ledger;
    notice_file notices;
    timeline_file timeline;
    event_file curves;
  };

  run_recorder(const run_directory& directory, run_recorder_options options, files files);

  void write_curves(const step_record& step);
  void keep_computing_times(const step_record& step);
  void show_progress(const step_record& step);
  void tell_once(const expected<void>& written);
  void keep(std::string_view line);
  void flush_now_and_then();

  std::mutex mutex_;
  run_directory directory_;
  run_recorder_options options_;
  files files_;
  step_timeline events_;
  summary summary_;
  progress progress_;
  uint64_t last_step_ = 0;
  std::chrono::steady_clock::time_point flushed_;
  std::vector<std::vector<job_time>> computing_times_;
  bool told_ = false;
};

} // namespace troupe
