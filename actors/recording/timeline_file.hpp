// SPDX-License-Identifier: Apache-2.0
// timeline.json: the events of every actor over time, for chrome://tracing and Perfetto.
#pragma once

#include "actors/recording/output_file.hpp"
#include "actors/recording/records.hpp"
#include "actors/recording/span_nesting.hpp"
#include "actors/recording/timeline_json.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// How a timeline is laid out and where it ends.
struct timeline_options {
  /// The heading above the tracks.
  std::string job = "troupe";
  /// Actors that get the first tracks, in this order, busy or not.
  std::vector<std::string> tracks;
  /// When the file would become longer, every second step is taken out of it.
  uint64_t file_bytes_max = uint64_t{128} << 20;
};

/// A trace is needed most after a run that was killed, and a JSON text without its last bracket is
/// none. So the file is a whole JSON object after every write: each block of events overwrites the
/// closing brackets of the one before and brings its own, in one system call. The gap that is left:
/// the kernel may stop between two memory pages of that call when the process is killed right then
/// (1 kill in 25 of a program that does nothing but write; viewers then still show what is there).
///
/// A job of any length fits: when the file is full, every second step is taken out of it, and every
/// second one is left out from then on; when it is full again, every fourth, and so on. So the
/// steps that are there are spread evenly over the whole job, and are the same in every run.
///
/// Each actor has one track, in the order of `timeline_options::tracks`, then of first appearance.
/// Spans of a track nest (`span_nesting`). An arrow is drawn between the *spans* that enclose its
/// two moments, so let a flow start and end inside a span.
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

  /// Writes pending events; a failure is lost here, so call `flush` where it matters.
  ~timeline_file();

  /// Adds events that belong to a step: all of them, or none if the step is left out, or if one
  /// step alone is too long. A note in the file says which steps are there.
  /// Cost: now and then half of the file is written again.
  /// Errors: `resource` once the disk has refused, then for ever; the file keeps what was written
  /// before.
  [[nodiscard]] expected<void> append(uint64_t step, std::span<const timeline_event> events);

  /// Adds one event, of the step that it names, as above.
  [[nodiscard]] expected<void> append(const timeline_event& event) {
    return append(event.step, {&event, 1});
  }

  /// Brings all events to the file. Errors: as `append`.
  [[nodiscard]] expected<void> flush();

private:
  struct track {
    timeline_json::track_number number = 0;
    span_nesting nesting;
    bool is_named = true; ///< In the file.
  };

  using track_map = std::map<std::string, track>;

  /// Where the events of a step stand in the file, or will.
  struct part {
    uint64_t step = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  timeline_file(output_file file, track_map tracks, std::string head, uint64_t file_bytes_max);

  [[nodiscard]] std::string text_of(std::span<const timeline_event> events);
  void name_tracks(std::span<const timeline_event> events);
  static timeline_event nested(track& track, timeline_event event);
  [[nodiscard]] bool fits(std::span<const timeline_event> events, uint64_t bytes) const;
  [[nodiscard]] bool can_thin() const;
  [[nodiscard]] expected<void> thin();
  [[nodiscard]] expected<void> write_again(const std::vector<part>& kept);

  output_file file_;
  std::string head_; // With all tracks.
  std::string pending_;
  uint64_t closing_offset_ = 0; // Where the closing brackets stand, and the next block goes.
  uint64_t file_bytes_max_ = 0;
  track_map tracks_;
  std::vector<part> parts_;
  uint64_t steps_apart_ = 1; // 2 if every second step is there, then 4, 8 and so on.
  error failure_;
};

} // namespace troupe
