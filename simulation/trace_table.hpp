// SPDX-License-Identifier: Apache-2.0
// Measured computing times from a file.
#pragma once

#include "messages/errc.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Computing times of replicas, one after the other.
struct trace_table {
  std::vector<std::vector<double>> seconds; ///< [replica][draw]; no replica is without.

  /// A replica beyond the last begins at the first again, and so do draws.
  [[nodiscard]] double at(uint32_t replica, uint64_t draw) const {
    const auto& of_replica = seconds[replica % seconds.size()];
    return of_replica[draw % of_replica.size()];
  }

  /// Over all times.
  [[nodiscard]] double mean() const;
};

/// Reads comma-separated values in one of three shapes:
///
/// | first line               | each line                                                         |
/// |--------------------------|-------------------------------------------------------------------|
/// | numbers                  | a step: the seconds of replica 0, replica 1, ...                  |
/// | `step,replica,seconds`   | one gradient; further columns are passed over, the order is free  |
/// | `replica,start,duration` | likewise: the draws of a replica are in the order of `start`      |
///
/// Lines that are empty or begin with '#' count for nothing.
/// @param name Begins every error message.
/// Errors: malformed, naming the line, for what is no number or below 0; if there is no line, or no
/// line of some replica below the largest.
[[nodiscard]] expected<trace_table> read_trace_table(std::string_view text,
                                                     const std::string& name);

/// Likewise from a file. Errors: not_found, resource; limit_exceeded for more than 1 GiB.
[[nodiscard]] expected<trace_table> load_trace_table(const std::string& path);

} // namespace troupe
