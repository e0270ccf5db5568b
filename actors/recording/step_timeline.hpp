// SPDX-License-Identifier: Apache-2.0
// Converts step records to the events of a timeline.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace troupe {

/// No actor sends timeline events: the record of a step has everything that a timeline shows of it,
/// in every world. This converts one record after the other.
///
/// | track          | spans                   | arrows                            |
/// |----------------|-------------------------|-----------------------------------|
/// | chief          | step, and in it: update |                                   |
/// | owner VARIABLE | apply                   |                                   |
/// | replica INDEX  | wait for token, compute | gradient -> update, token -> next |
///
/// A gradient that was dropped or cancelled leaves an instant instead of an arrow. No event is
/// before the beginning of the job.
class step_timeline {
public:
  /// The events of one more step, in order of time on each track.
  [[nodiscard]] std::vector<timeline_event> events_of(const step_record& step);

private:
  void add_chief(const step_record& step, std::vector<timeline_event>& events) const;
  void add_compute(const contribution& gradient, const step_record& step,
                   std::vector<timeline_event>& events);
  void add_gradient_arrow(const contribution& gradient, const step_record& step,
                          std::vector<timeline_event>& events);
  void add_token_arrow(const contribution& gradient, const step_record& step,
                       std::vector<timeline_event>& events);

  std::map<uint64_t, job_time> step_ends_; ///< When the latest steps' tokens were made.
  uint64_t flows_ = 0;
};

/// The track of a replica.
[[nodiscard]] std::string replica_track(uint32_t replica);

/// The track of a variable's owner.
[[nodiscard]] std::string owner_track(const std::string& variable);

} // namespace troupe
