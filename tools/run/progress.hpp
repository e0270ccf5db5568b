// SPDX-License-Identifier: Apache-2.0
// The text of the line that shows the progress of a run.
#pragma once

#include "actors/recording/records.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The progress of a run at one moment.
struct progress_sample {
  uint64_t step = 0;
  uint64_t step_count = 0;                                ///< Steps of the whole run; 0 if unknown.
  double loss = std::numeric_limits<double>::quiet_NaN(); ///< In `progress_options::loss_unit`.
  uint64_t examples = 0;                                  ///< In this process's updates so far.
  /// The last step's. 0, without a loss: the trainer reports neither.
  double examples_per_second = std::numeric_limits<double>::quiet_NaN();
  uint32_t live = 0;
  uint32_t needed = 0;
  uint64_t dropped = 0; ///< Gradients that were stale or cancelled, so far.
};

/// Settings of the progress line.
struct progress_options {
  bool terminal = false; ///< One line, rewritten in place; else plain lines, as for a log file.
  /// Letters in a line of the terminal. A longer text is shortened, since it could not be
  /// rewritten.
  size_t width = 80;
  std::string loss_unit; ///< Stands after the loss: "bits/byte".
};

/// Makes the texts of the progress line when they are due. Reads no clock and writes nothing: the
/// caller passes times, and writes the texts to one stream. A terminal gets at most ten lines a
/// second. Any other stream gets a line at the first step, then for each tenth of the run or each
/// five seconds, whichever comes first, and one at the last step. The speed is that of the last
/// seconds; in the first text it is the step's. Thread: one at a time.
class progress {
public:
  explicit progress(progress_options options) : options_(std::move(options)) {}

  /// From now on a line of the terminal has room for so many letters.
  void fit(size_t width) { options_.width = width; }

  /// The text to write now; empty: none is due.
  [[nodiscard]] std::string update(const progress_sample& sample, job_time now);

  /// The text that puts a line of its own (without line end) above the progress line.
  [[nodiscard]] std::string message(std::string_view line);

  /// The text that ends the progress line, so that what is printed next begins on a new one.
  [[nodiscard]] std::string finish();

private:
  struct shown {
    uint64_t step = 0;
    job_time when{0};
    uint64_t examples = 0;
  };

  [[nodiscard]] bool is_due(const progress_sample& sample, job_time now) const;
  [[nodiscard]] std::vector<std::string> pieces(const progress_sample& sample, job_time now) const;
  void measure_from(const shown& here);
  [[nodiscard]] double examples_per_second(const progress_sample& sample, job_time now) const;
  [[nodiscard]] std::string remaining(const progress_sample& sample, job_time now) const;

  progress_options options_;
  std::optional<shown> first_; // the first sample, from which the rate is measured
  shown last_;                 // the last sample that was shown
  shown before_;               // an older one, from which the speed is measured
  shown next_before_;          // takes its place
  std::string open_line_;      // on a terminal: the line to rewrite
};

} // namespace troupe
