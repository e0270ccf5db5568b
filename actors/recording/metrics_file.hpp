// SPDX-License-Identifier: Apache-2.0
// metrics.csv: the run as a table with one line per step.
#pragma once

#include "actors/recording/output_file.hpp"
#include "actors/recording/records.hpp"

namespace troupe {

/// One line per step, so that "how did the loss fall, and how fast" is one plot of two columns.
///
/// | column                 | unit     | meaning                                            |
/// |------------------------|----------|----------------------------------------------------|
/// | step                   |          | global step after the update                       |
/// | seconds                | s        | when the update was done, since the job began      |
/// | loss                   |          | mean over the accepted contributions               |
/// | examples_per_second    | 1/s      | examples of those, over step_seconds               |
/// | accepted               | 1        | contributions that went into the update            |
/// | stale                  | 1        | ... dropped since the update before: they were late |
/// | cancelled              | 1        | ... told to stop: the step had enough without them |
/// | live, needed           | replicas | that take part; that an update waits for           |
/// | step_seconds           | s        | since the update before                            |
/// | apply_seconds          | s        | of that, from the last needed gradient to the end  |
///
/// A gradient that one variable took and another dropped is stale, although parts of it are in the
/// update. A gradient counts in the line of the step in which its last part was taken or dropped.
/// A gradient that was done when its replica was told to stop counts twice: as cancelled, and as
/// stale in that line or a later one.
/// So `accepted` may be below or above `needed`. A field without a value is empty. Lines reach the
/// disk in blocks: see `flush`.
class metrics_file {
public:
  /// The first line of the file.
  static constexpr std::string_view header
    = "step,seconds,loss,examples_per_second,accepted,stale,cancelled,live,needed,step_seconds,"
      "apply_seconds\n";

  /// Creates the file with its header. Errors: `resource`.
  [[nodiscard]] static expected<metrics_file> create(std::filesystem::path path);

  /// Adds a step. Errors: `resource`, for ever after the first.
  [[nodiscard]] expected<void> append(const step_record& step);

  /// Brings all lines to the file. Errors: as `append`.
  [[nodiscard]] expected<void> flush() { return lines_.flush(); }

private:
  explicit metrics_file(record_writer lines) : lines_(std::move(lines)) {}

  record_writer lines_;
};

} // namespace troupe
