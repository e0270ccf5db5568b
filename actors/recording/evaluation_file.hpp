// SPDX-License-Identifier: Apache-2.0
// evaluations.csv: how well the variables did on held-out data.
#pragma once

#include "actors/recording/output_file.hpp"
#include "actors/recording/records.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Evaluations go on beside the training and are ready steps later, so they have a table of their
/// own instead of a column in metrics.csv that is mostly empty.
///
/// | column        | unit     | meaning                                                   |
/// |---------------|----------|-----------------------------------------------------------|
/// | step          |          | global step that the variables had at least               |
/// | seconds       | s        | when the result was there, since the job began            |
/// | the measure   | its own  | of the held-out data, as in `bits_per_byte`               |
class evaluation_file {
public:
  /// The first line of the file. @param measure The name of the measure: "bits_per_byte".
  [[nodiscard]] static std::string header(std::string_view measure);

  /// Creates the file with its header. Errors: `resource`.
  [[nodiscard]] static expected<evaluation_file> create(std::filesystem::path path,
                                                        std::string_view measure);

  /// Goes on with the file that an earlier process has left; creates it if there is none. A line
  /// that was cut off is dropped.
  /// Errors: `resource`; `failed_precondition` if it is another file, `invalid_argument` if it is a
  /// folder or a device, `malformed` if it becomes shorter meanwhile. The file stays as it is.
  [[nodiscard]] static expected<evaluation_file> go_on(std::filesystem::path path,
                                                       std::string_view measure);

  /// The step of the last line; nothing if there is none.
  [[nodiscard]] std::optional<uint64_t> last_step() const { return last_step_; }

  /// Adds a result. Errors: `resource`, for ever after the first.
  [[nodiscard]] expected<void> append(uint64_t step, job_time when, double value);

  /// Brings all lines to the file. Errors: as `append`.
  [[nodiscard]] expected<void> flush() { return lines_.flush(); }

private:
  explicit evaluation_file(record_writer lines) : lines_(std::move(lines)) {}

  record_writer lines_;
  std::optional<uint64_t> last_step_;
};

} // namespace troupe
