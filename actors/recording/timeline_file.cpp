// SPDX-License-Identifier: Apache-2.0
// Keeping a JSON file whole while it grows.
#include "actors/recording/timeline_file.hpp"

#include <utility>

namespace troupe {

namespace {

constexpr std::string_view closing = "\n]}\n";
constexpr std::string_view separator = ",\n";
constexpr std::string_view full_note
  = "the timeline is full: what came later was left out (raise the limit, or make fewer steps)";

// Kept free for the note and the closing brackets of a full file.
constexpr uint64_t reserved_bytes = 256;

} // namespace

expected<timeline_file> timeline_file::create(const std::filesystem::path& path,
                                              const timeline_options& options) {
  auto head = R"({"displayTimeUnit":"ms","traceEvents":[)"
              "\n"
              + timeline_json::job_name(options.job);
  track_map tracks;
  for (const auto& name : options.tracks) {
    const auto [place, is_new] = tracks.try_emplace(name, track{tracks.size() + 1, {}});
    if (is_new)
      head.append(separator).append(timeline_json::track_name(place->second.number, name));
  }
  auto unfinished = path;
  unfinished += ".new";
  auto file = output_file::create(unfinished);
  if (!file) return tl::unexpected(file.error());
  if (auto done = file->write_at(0, head + std::string{closing}); !done)
    return tl::unexpected(done.error());
  if (auto done = file->rename(path); !done) return tl::unexpected(done.error());
  return timeline_file{std::move(*file), std::move(tracks), head.size(), options.file_bytes_max};
}

timeline_file::timeline_file(output_file file, track_map tracks, uint64_t head_bytes,
                             uint64_t file_bytes_max)
  : file_(std::move(file)), closing_offset_(head_bytes), file_bytes_max_(file_bytes_max),
    tracks_(std::move(tracks)) {}

timeline_file::~timeline_file() {
  [[maybe_unused]] const auto ignored = flush();
}

expected<void> timeline_file::append(const timeline_event& event) {
  if (failure_.code != errc::none) return tl::unexpected(failure_);
  if (full_) {
    ++left_out_;
    return {};
  }
  auto& track = track_of(event.actor);
  auto text = timeline_json::event(track.number, nested(track, event));
  full_ = !fits(text);
  if (full_) {
    ++left_out_;
    text = timeline_json::note(event.start, full_note);
  }
  pending_.append(separator).append(text);
  return full_ || pending_.size() >= pending_bytes_max ? flush() : expected<void>{};
}

expected<void> timeline_file::flush() {
  if (failure_.code != errc::none) return tl::unexpected(failure_);
  if (pending_.empty()) return {};
  auto done = file_.write_at(closing_offset_, pending_ + std::string{closing});
  if (done) {
    closing_offset_ += pending_.size();
  } else {
    failure_ = done.error();
    // The brackets go back to where they were; that part of the file needs no new space.
    [[maybe_unused]] const auto ignored = file_.write_at(closing_offset_, closing);
    file_.truncate(closing_offset_ + closing.size());
  }
  pending_.clear();
  return done;
}

timeline_file::track& timeline_file::track_of(const std::string& actor) {
  const auto [place, is_new] = tracks_.try_emplace(actor, track{tracks_.size() + 1, {}});
  if (is_new)
    pending_.append(separator).append(timeline_json::track_name(place->second.number, actor));
  return place->second;
}

timeline_event timeline_file::nested(track& track, timeline_event event) {
  if (event.what != timeline_event::kind::span) return event;
  const auto whole = time_span{event.start, event.start + event.duration};
  const auto fitted = track.nesting.fit(whole);
  if (fitted != whole) ++cut_;
  event.start = fitted.start;
  event.duration = fitted.end - fitted.start;
  return event;
}

bool timeline_file::fits(const std::string& text) const {
  const uint64_t size = closing_offset_ + pending_.size() + separator.size() + text.size();
  return size + reserved_bytes <= file_bytes_max_;
}

} // namespace troupe
