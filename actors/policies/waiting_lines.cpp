// SPDX-License-Identifier: Apache-2.0
// The periods and the words of the lines of a wait.
#include "actors/policies/waiting_lines.hpp"

#include "actors/recording/seconds.hpp"

#include <fmt/format.h>

namespace troupe {

std::optional<std::string> waiting_lines::due(job_time waited, std::string_view awaited) {
  if (waited < next_) return std::nullopt;
  while (next_ <= waited)
    next_ += waiting_line_period;
  return fmt::format("still waiting for {}, {:.0f} s of {:.0f}", awaited, seconds(waited),
                     seconds(limit_));
}

} // namespace troupe
