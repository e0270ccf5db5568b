// SPDX-License-Identifier: Apache-2.0
// The line that tells how far a run is.
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

/// Where a run stands.
struct progress_sample {
  uint64_t step = 0;
  uint64_t step_count = 0;                                ///< Steps of the whole run; 0 if unknown.
  double loss = std::numeric_limits<double>::quiet_NaN(); ///< In `progress_options::loss_unit`.
  /// 0, and no loss: the trainer reports none.
  double examples_per_second = std::numeric_limits<double>::quiet_NaN();
  uint32_t live = 0;
  uint32_t needed = 0;
  uint64_t dropped = 0; ///< Gradients that were stale or cancelled, so far.
};

/// How to show it.
struct progress_options {
  bool terminal = false; ///< One line, rewritten in place; else plain lines, as for a log file.
  size_t width
    = 80; ///< Letters in a line. A line that wraps cannot be rewritten, so less is shown.
  std::string loss_unit; ///< Stands after the loss: "bits/byte".
};

/// Makes the texts of the progress line when they are due. It writes nothing and reads no clock:
/// times come in, texts go out, for the caller to write to one stream. A terminal gets at most ten
/// lines a second; any other stream one line at the first step, then for each tenth of the run or
/// each five seconds, whichever comes first, and one at the last step. Thread: one owner at a time.
class progress {
public:
  explicit progress(progress_options options) : options_(std::move(options)) {}

  /// The text to write now; empty if none is due.
  [[nodiscard]] std::string update(const progress_sample& sample, job_time now);

  /// The text that puts a line of its own (without line end) above the progress line.
  [[nodiscard]] std::string message(std::string_view line);

  /// The text that ends the progress line, so that what is printed next begins on a new one.
  [[nodiscard]] std::string finish();

private:
  struct shown {
    uint64_t step = 0;
    job_time when{0};
  };

  [[nodiscard]] bool is_due(const progress_sample& sample, job_time now) const;
  [[nodiscard]] std::vector<std::string> pieces(const progress_sample& sample, job_time now) const;
  [[nodiscard]] std::string remaining(const progress_sample& sample, job_time now) const;

  progress_options options_;
  std::optional<shown> first_; // The first sample: the rate is measured from there.
  shown last_;                 // The last sample that was shown.
  std::string open_line_;      // On a terminal: the text of the line that can be rewritten.
};

} // namespace troupe
