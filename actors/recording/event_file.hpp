// SPDX-License-Identifier: Apache-2.0
// events.out.tfevents.*: the curves of a run, as TensorBoard reads them.
#pragma once

#include "actors/recording/output_file.hpp"
#include "actors/recording/records.hpp"

#include <chrono>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// One point of a curve.
struct event_scalar {
  std::string_view tag; ///< The curve's name; tags with the same word before a "/" lie together.
  double value = 0;     ///< Written as f32, since that is what the file holds.
};

/// When and where a run began: what its events are dated and named by.
struct event_origin {
  std::chrono::system_clock::time_point started;
  std::string host;
};

/// TensorBoard shows a run while it goes on, from files that hold one framed message after the
/// other. The file always ends with a whole one; what is new reaches it within five seconds of job
/// time.
///
/// | curve                                       | unit     | meaning                       |
/// |---------------------------------------------|----------|-------------------------------|
/// | loss                                        |          | mean over the accepted        |
/// | speed/examples_per_second                   | 1/s      | of the accepted gradients     |
/// | speed/step_seconds, speed/apply_seconds     | s        | as in metrics.csv             |
/// | gradients/accepted, .../stale, .../cancelled | 1        | since the update before       |
/// | replicas/live                               | replicas | that take part                |
/// | speed/compute_seconds (a histogram)         | s        | of accepted and stale ones    |
///
/// Source: tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto.
class event_file {
public:
  /// Creates events.out.tfevents.SECONDS.HOST in a folder; where that is there already, the next
  /// free one of SECONDS.HOST.1, SECONDS.HOST.2 and so on.
  /// Errors: `resource`.
  [[nodiscard]] static expected<event_file> create(const std::filesystem::path& folder,
                                                   const event_origin& origin);

  /// Whether a step of a long run is to have points: the first 100,000 are, then one in ten of a
  /// million, and so on. No viewer draws more.
  [[nodiscard]] static bool has_points(uint64_t step);

  /// Adds the points of a step. Errors: `resource`, for ever after the first.
  [[nodiscard]] expected<void> append(const step_record& step);

  /// Adds points of other curves at one step; values that are no number are left out.
  /// Errors: as above.
  [[nodiscard]] expected<void> add(uint64_t step, job_time when,
                                   std::span<const event_scalar> scalars);

  /// Adds how some values are distributed at one step; nothing if there are none.
  /// Errors: as above.
  [[nodiscard]] expected<void> add_histogram(uint64_t step, job_time when, std::string_view tag,
                                             std::span<const double> values);

  /// Brings all events to the file. Errors: as above.
  [[nodiscard]] expected<void> flush() { return events_.flush(); }

  /// Where the file lies.
  [[nodiscard]] const std::filesystem::path& path() const { return events_.path(); }

private:
  event_file(record_writer events, std::chrono::system_clock::time_point started)
    : events_(std::move(events)), started_(started) {}

  [[nodiscard]] expected<void> write(uint64_t step, job_time when, const std::string& content);

  record_writer events_;
  std::chrono::system_clock::time_point started_;
  job_time flushed_{0};
};

} // namespace troupe
