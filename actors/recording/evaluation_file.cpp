// SPDX-License-Identifier: Apache-2.0
// The lines of evaluations.csv.
#include "actors/recording/evaluation_file.hpp"

#include "actors/recording/csv.hpp"

namespace troupe {

expected<evaluation_file> evaluation_file::create(std::filesystem::path path) {
  auto lines = record_writer::create(std::move(path));
  if (!lines) return tl::unexpected(lines.error());
  evaluation_file file{std::move(*lines)};
  if (auto done = file.lines_.append(header); !done) return tl::unexpected(done.error());
  if (auto done = file.flush(); !done) return tl::unexpected(done.error());
  return file;
}

expected<void> evaluation_file::append(uint64_t step, job_time when, double bits_per_byte) {
  return lines_.append(
    csv::line({std::to_string(step), csv::seconds(when), csv::field(bits_per_byte)}));
}

} // namespace troupe
