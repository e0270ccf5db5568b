// SPDX-License-Identifier: Apache-2.0
// The events of a timeline as JSON texts in Chrome's trace event format.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::timeline_json {

/// The number of a track: `tid` in the file. 1 is the first.
using track_number = uint64_t;

/// A text as a JSON string, quotes included. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string string(std::string_view text);

/// Names the job: the heading above all tracks.
[[nodiscard]] std::string job_name(std::string_view name);

/// Names a track and fixes its place among the others.
[[nodiscard]] std::string track_name(track_number track, std::string_view name);

/// One event. Spans, instants and the ends of flows stand on `track`. Both ends of a flow have the
/// same category, name and number, since viewers pair them by all three. Units: microseconds with
/// three decimals, so nanoseconds survive.
[[nodiscard]] std::string event(track_number track, const timeline_event& event);

/// A moment of the whole job, with a sentence for the reader.
[[nodiscard]] std::string note(job_time when, std::string_view sentence);

} // namespace troupe::timeline_json
