// SPDX-License-Identifier: Apache-2.0
// Keeping the JSON file whole while it grows, and thinning it out.
#include "actors/recording/timeline_file.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view closing = "\n]}\n";
constexpr std::string_view separator = ",\n";
// Kept free for the note of which steps are there, and the closing brackets.
constexpr uint64_t reserved_bytes = 256;

std::filesystem::path unfinished(std::filesystem::path path) {
  path += ".new";
  return path;
}

// Removes a file that could not be written whole: it takes up room, where perhaps there is none.
tl::unexpected<error> forget_unfinished(const std::filesystem::path& path, error why) {
  std::error_code ignored;
  std::filesystem::remove(unfinished(path), ignored);
  return tl::unexpected<error>{std::move(why)};
}

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
  auto file = output_file::create(unfinished(path));
  if (!file) return tl::unexpected(file.error());
  auto done
    = file->write_at(0, head + std::string{closing}).and_then([&] { return file->rename(path); });
  if (!done) return forget_unfinished(path, done.error());
  return timeline_file{std::move(*file), std::move(tracks), std::move(head),
                       options.file_bytes_max};
}

timeline_file::timeline_file(output_file file, track_map tracks, std::string head,
                             uint64_t file_bytes_max)
  : file_(std::move(file)), head_(std::move(head)), closing_offset_(head_.size()),
    file_bytes_max_(file_bytes_max), tracks_(std::move(tracks)) {}

timeline_file::~timeline_file() {
  [[maybe_unused]] const auto ignored = flush();
}

expected<void> timeline_file::append(uint64_t step, std::span<const timeline_event> events) {
  if (failure_.code != errc::none) return tl::unexpected(failure_);
  auto is_kept = [&] { return step % steps_apart_ == 0; };
  auto text = is_kept() ? text_of(events) : std::string{};
  while (is_kept() && !fits(events, text.size()) && can_thin())
    if (auto done = thin(); !done) return done;
  if (!is_kept() || !fits(events, text.size())) return {};
  name_tracks(events);
  parts_.push_back({step, closing_offset_ + pending_.size(), text.size()});
  pending_ += text;
  return pending_.size() >= pending_bytes_max ? flush() : expected<void>{};
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

std::string timeline_file::text_of(std::span<const timeline_event> events) {
  std::string text;
  for (const auto& event : events) {
    auto& track
      = tracks_.try_emplace(event.actor, timeline_file::track{tracks_.size() + 1, {}, false})
          .first->second;
    text.append(separator).append(timeline_json::event(track.number, nested(track, event)));
  }
  return text;
}

// Names the tracks that have their first events in the file now.
void timeline_file::name_tracks(std::span<const timeline_event> events) {
  for (const auto& event : events) {
    auto& track = tracks_.at(event.actor);
    if (std::exchange(track.is_named, true)) continue;
    auto name = std::string{separator} + timeline_json::track_name(track.number, event.actor);
    head_ += name;
    pending_ += name;
  }
}

timeline_event timeline_file::nested(track& track, timeline_event event) {
  if (event.what != timeline_event::kind::span) return event;
  const auto fitted = track.nesting.fit({event.start, event.start + event.duration});
  event.start = fitted.start;
  event.duration = fitted.end - fitted.start;
  return event;
}

bool timeline_file::fits(std::span<const timeline_event> events, uint64_t bytes) const {
  std::set<std::string_view> unnamed;
  for (const auto& event : events)
    if (const auto& track = tracks_.at(event.actor);
        !track.is_named && unnamed.insert(event.actor).second)
      bytes += separator.size() + timeline_json::track_name(track.number, event.actor).size();
  return closing_offset_ + pending_.size() + bytes + reserved_bytes <= file_bytes_max_;
}

// Whether the file has more than one step.
bool timeline_file::can_thin() const {
  auto differs = [&](const part& each) { return each.step != parts_.front().step; };
  return std::ranges::any_of(parts_, differs);
}

expected<void> timeline_file::thin() {
  steps_apart_ *= 2;
  std::vector<part> kept;
  std::ranges::copy_if(parts_, std::back_inserter(kept),
                       [this](const part& each) { return each.step % steps_apart_ == 0; });
  if (kept.size() == parts_.size()) return {};
  auto done = flush().and_then([&] { return write_again(kept); });
  if (done) return done;
  failure_ = done.error();
  return forget_unfinished(file_.path(), failure_);
}

// Writes the kept parts into a new file, which takes the place of this one when it is whole.
expected<void> timeline_file::write_again(const std::vector<part>& kept) {
  auto path = file_.path();
  std::ifstream before{path, std::ios::binary};
  auto after = output_file::create(unfinished(path));
  if (!after) return tl::unexpected(after.error());
  auto sentence = fmt::format("the file was full: of every {} steps one is shown", steps_apart_);
  auto block = head_ + std::string{separator} + timeline_json::note(job_time{0}, sentence);
  uint64_t written = 0;
  auto write = [&] {
    auto done = after->write_at(written, block);
    written += block.size();
    block.clear();
    return done;
  };
  parts_.clear();
  for (auto each : kept) {
    std::string text(each.bytes, '\0');
    before.seekg(static_cast<std::streamoff>(each.offset));
    before.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!before)
      return fail(errc::resource, fmt::format("{}: cannot be read again", path.string()));
    each.offset = written + block.size();
    parts_.push_back(each);
    block += text;
    if (block.size() < pending_bytes_max) continue;
    if (auto done = write(); !done) return done;
  }
  closing_offset_ = written + block.size();
  block += closing;
  if (auto done = write(); !done) return done;
  if (auto done = after->rename(path); !done) return done;
  file_ = std::move(*after);
  return {};
}

} // namespace troupe
