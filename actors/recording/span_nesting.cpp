// SPDX-License-Identifier: Apache-2.0
// Cutting spans that overlap in part.
#include "actors/recording/span_nesting.hpp"

#include <algorithm>

namespace troupe {

time_span span_nesting::fit(time_span span) {
  span.end = std::max(span.end, span.start);
  // One pass suffices: the remembered spans nest among themselves, so a cut at the edge of one of
  // them never goes through another that the newcomer encloses.
  for (const auto& other : recent_) {
    const bool runs_into = span.start < other.start && other.start < span.end;
    const bool starts_inside = other.start < span.start && span.start < other.end;
    if (runs_into && span.end < other.end)
      span.end = other.start;
    else if (starts_inside && other.end < span.end)
      span.start = other.end;
  }
  if (recent_.size() == remembered_max) recent_.pop_front();
  recent_.push_back(span);
  return span;
}

} // namespace troupe
