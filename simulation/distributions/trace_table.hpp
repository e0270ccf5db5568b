// SPDX-License-Identifier: Apache-2.0
// Measured computing times from a file.
#pragma once

#include "messages/errors/errc.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Computing times of replicas, one after the other.
struct trace_table {
  std::vector<std::vector<double>> seconds; ///< [replica][draw]; no replica is without.

  /// Draws of the replica that has the fewest.
  [[nodiscard]] uint64_t draw_count() const;

  /// Times of the first so many replicas, or of all if there are fewer.
  [[nodiscard]] uint64_t time_count(uint64_t replicas) const;

  /// How often the shortest series of times is gone through, if so many replicas draw so many times
  /// together. Where the table has fewer replicas, they take turns.
  [[nodiscard]] double repeats(double draws, uint64_t replicas) const;

  /// Over all times.
  [[nodiscard]] double mean() const;
};

/// Reads comma-separated values in one of these shapes:
///
/// | first line               | each line                                                         |
/// |--------------------------|-------------------------------------------------------------------|
/// | numbers                  | a step: the seconds of replica 0, replica 1, ...                  |
/// | a name for each replica  | the same                                                          |
/// | `step,replica,seconds`   | one gradient; further columns are passed over, the order is free  |
/// | `replica,start,duration` | one gradient; the draws of a replica are in the order of `start`  |
///
/// `0,1,2,...` are names. A first column without a name, or named `step`, `index` or `Unnamed: 0`,
/// holds the indices of lines, as pandas writes them, and is passed over; so is one that counts
/// lines from 0 where there are no names. `worker` and `rank` are `replica`, `time` is `seconds`;
/// small letters and capitals are alike. Empty lines, lines that begin with '#', and quotes around
/// a field count for nothing.
/// @param name Begins every error message.
/// Errors: malformed, naming the line, for what is no number or below 0; if there is no line, or no
/// line of some replica below the largest.
[[nodiscard]] expected<trace_table> read_trace_table(std::string_view text,
                                                     const std::string& name);

/// Reads a file as `read_trace_table` does. Errors: not_found, resource; limit_exceeded for more
/// than 1 GiB.
[[nodiscard]] expected<trace_table> load_trace_table(const std::string& path);

} // namespace troupe
