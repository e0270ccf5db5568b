// SPDX-License-Identifier: Apache-2.0
// timeline.json: what every actor did when, for chrome://tracing and Perfetto.
#pragma once

#include "actors/recording/output_file.hpp"
#include "actors/recording/records.hpp"
#include "actors/recording/span_nesting.hpp"
#include "actors/recording/timeline_json.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe {

/// How a timeline is laid out and where it ends.
struct timeline_options {
  /// The heading above the tracks.
  std::string job = "troupe";
  /// Actors that get the first tracks, in this order, busy or not.
  std::vector<std::string> tracks;
  /// What would make the file longer is counted, not written.
  uint64_t file_bytes_max = uint64_t{128} << 20;
};

/// A trace is needed most after a run that was killed, and a JSON text without its last bracket is
/// none. So the file is a whole JSON object after every write: each block of events overwrites the
/// closing brackets of the one before and brings its own, in one system call. The gap that is left:
/// the kernel may stop between two memory pages of that call when the process is killed right then
/// (1 kill in 25 of a program that does nothing but write; viewers then still show what is there).
///
/// Each actor has one track, in the order of `timeline_options::tracks`, then of first appearance.
/// Spans of a track nest (see `span_nesting`; what had to be cut is counted). An arrow is drawn
/// between the *spans* that enclose its two moments, so let a flow start and end inside a span.
class timeline_file {
public:
  /// Bytes of events that may wait in memory.
  static constexpr size_t pending_bytes_max = size_t{64} << 10;

  /// Creates the file with its tracks; it appears under `path` when it is whole.
  /// Errors: `resource`.
  [[nodiscard]] static expected<timeline_file> create(const std::filesystem::path& path,
                                                      const timeline_options& options = {});

  timeline_file(timeline_file&&) noexcept = default;
  timeline_file& operator=(timeline_file&&) = delete;

  /// Writes what is pending; a failure is lost here, so call `flush` where it matters.
  ~timeline_file();

  /// Adds an event. An event beyond the size limit is left out, and a note in the file says so.
  /// Errors: `resource` once the disk has refused, then for ever; the file keeps what was written
  /// before.
  [[nodiscard]] expected<void> append(const timeline_event& event);

  /// Brings all events to the file. Errors: as `append`.
  [[nodiscard]] expected<void> flush();

  /// Events that the size limit kept out.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

  /// Spans that had to be cut in order to nest.
  [[nodiscard]] uint64_t cut() const { return cut_; }

private:
  struct track {
    timeline_json::track_number number = 0;
    span_nesting nesting;
  };

  using track_map = std::map<std::string, track>;

  timeline_file(output_file file, track_map tracks, uint64_t head_bytes, uint64_t file_bytes_max);

  track& track_of(const std::string& actor);
  timeline_event nested(track& track, timeline_event event);
  [[nodiscard]] bool fits(const std::string& text) const;

  output_file file_;
  std::string pending_;
  uint64_t closing_offset_ = 0; // Where the closing brackets stand, and the next block goes.
  uint64_t file_bytes_max_ = 0;
  track_map tracks_;
  bool full_ = false;
  uint64_t left_out_ = 0;
  uint64_t cut_ = 0;
  error failure_;
};

} // namespace troupe
