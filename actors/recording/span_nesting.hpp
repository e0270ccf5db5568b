// SPDX-License-Identifier: Apache-2.0
// Makes the spans of one track nest, as viewers of traces demand.
#pragma once

#include "actors/recording/records.hpp"

#include <cstddef>
#include <deque>

namespace troupe {

/// From one moment to another.
struct time_span {
  job_time start{0};
  job_time end{0};

  bool operator==(const time_span&) const = default;
};

/// Viewers draw the spans of a track as a stack and show nonsense, without a word, for two that
/// overlap in part. Spans come in when they end, and clocks are read at slightly different moments,
/// so such overlaps happen. The newcomer is then cut to the part that nests; earlier spans stay as
/// they are.
class span_nesting {
public:
  /// How many spans back an overlap is still found; older ones lie in the past of an actor that
  /// works in order.
  static constexpr size_t remembered_max = 64;

  /// The largest part of `span` that lies wholly inside, around, or beside every remembered span;
  /// then remembers it.
  [[nodiscard]] time_span fit(time_span span);

private:
  std::deque<time_span> recent_;
};

} // namespace troupe
