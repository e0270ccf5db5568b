// SPDX-License-Identifier: Apache-2.0
// The lines by which a wait of many seconds says what it waits for.
#pragma once

#include "actors/recording/records.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The time between two lines of one wait.
constexpr job_time waiting_line_period = std::chrono::seconds{10};

/// The lines of one wait: "still waiting for worker:2 to enter the job, 10 s of 60".
class waiting_lines {
public:
  /// @param limit How long the wait may last.
  explicit waiting_lines(job_time limit) : limit_(limit) {}

  /// The line to say now, if another period is over since the last one.
  /// @param waited The time since the wait began. @param awaited Names what is missing.
  [[nodiscard]] std::optional<std::string> due(job_time waited, std::string_view awaited);

private:
  job_time limit_;
  job_time next_ = waiting_line_period;
};

} // namespace troupe
