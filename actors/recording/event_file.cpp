// SPDX-License-Identifier: Apache-2.0
// Encoding the points and histograms of a run as events.
#include "actors/recording/event_file.hpp"

#include "actors/recording/protobuf.hpp"
#include "actors/recording/seconds.hpp"
#include "actors/recording/step_figures.hpp"
#include "actors/recording/tfrecord.hpp"
#include "actors/recording/value_histogram.hpp"

#include <cmath>
#include <fmt/format.h>
#include <system_error>
#include <vector>

namespace troupe {

namespace {

// Numbers of the fields that we write.
namespace event {
constexpr uint32_t wall_time = 1;
constexpr uint32_t step = 2;
constexpr uint32_t file_version = 3;
constexpr uint32_t summary = 5;
} // namespace event

namespace summary_field {
constexpr uint32_t value = 1;
constexpr uint32_t tag = 1; // A field of a value, as are those below.
constexpr uint32_t simple_value = 2;
constexpr uint32_t histogram = 5;
} // namespace summary_field

namespace histogram_field {
constexpr uint32_t min = 1;
constexpr uint32_t max = 2;
constexpr uint32_t count = 3;
constexpr uint32_t sum = 4;
constexpr uint32_t sum_of_squares = 5;
constexpr uint32_t upper_limits = 6;
constexpr uint32_t counts = 7;
} // namespace histogram_field

constexpr job_time flush_interval = std::chrono::seconds{5};

// Seconds since 1970; microseconds are what a double still holds of such a number.
double seconds_of(std::chrono::system_clock::time_point moment) {
  using std::chrono::microseconds;
  const auto whole = std::chrono::duration_cast<microseconds>(moment.time_since_epoch());
  return std::chrono::duration<double>(whole).count();
}

protobuf_message encode(const value_histogram& histogram) {
  namespace field = histogram_field;
  return protobuf_message{}
    .add_double(field::min, histogram.min)
    .add_double(field::max, histogram.max)
    .add_double(field::count, histogram.count)
    .add_double(field::sum, histogram.sum)
    .add_double(field::sum_of_squares, histogram.sum_of_squares)
    .add_doubles(field::upper_limits, histogram.upper_limits)
    .add_doubles(field::counts, histogram.counts);
}

// A path that is free: an evaluator that is started again has the origin of the one before it,
// and the former curve stays.
std::filesystem::path free_path(const std::filesystem::path& folder, const event_origin& origin) {
  const auto name = fmt::format("events.out.tfevents.{}.{}",
                                std::chrono::system_clock::to_time_t(origin.started), origin.host);
  std::error_code ignored;
  auto path = folder / name;
  for (uint64_t number = 1; std::filesystem::exists(path, ignored); ++number)
    path = folder / fmt::format("{}.{}", name, number);
  return path;
}

} // namespace

expected<event_file> event_file::create(const std::filesystem::path& folder,
                                        const event_origin& origin) {
  const auto version = protobuf_message{}
                         .add_double(event::wall_time, seconds_of(origin.started))
                         .add_bytes(event::file_version, "brain.Event:2");
  return record_writer::create(free_path(folder, origin), tfrecord::frame(version.bytes()))
    .map([&](record_writer events) {
      return event_file{std::move(events), origin.started};
    });
}

bool event_file::has_points(uint64_t step) {
  uint64_t distance = 1;
  while (step / distance > 100'000)
    distance *= 10;
  return step % distance == 0;
}

expected<void> event_file::append(const step_record& step) {
  const event_scalar scalars[]
    = {{"loss", mean_loss(step)},
       {"speed/examples_per_second", examples_per_second(step)},
       {"speed/step_seconds", seconds(step_duration(step))},
       {"speed/apply_seconds", seconds(step.apply)},
       {"gradients/accepted", static_cast<double>(step.accepted.size())},
       {"gradients/stale", static_cast<double>(step.stale.size())},
       {"gradients/cancelled", static_cast<double>(step.cancelled.size())},
       {"replicas/live", static_cast<double>(step.live)}};
  if (auto done = add(step.step, step.ended, scalars); !done) return done;
  std::vector<double> computing;
  for (const auto* part : {&step.accepted, &step.stale})
    for (const auto& gradient : *part)
      computing.push_back(seconds(gradient.compute));
  return add_histogram(step.step, step.ended, "speed/compute_seconds", computing);
}

expected<void> event_file::add(uint64_t step, job_time when,
                               std::span<const event_scalar> scalars) {
  protobuf_message summary;
  for (const auto& [tag, value] : scalars) {
    if (std::isnan(value)) continue;
    summary.add_bytes(summary_field::value,
                      protobuf_message{}
                        .add_bytes(summary_field::tag, tag)
                        .add_float(summary_field::simple_value, static_cast<float>(value))
                        .bytes());
  }
  return summary.bytes().empty() ? expected<void>{} : write(step, when, summary.bytes());
}

expected<void> event_file::add_histogram(uint64_t step, job_time when, std::string_view tag,
                                         std::span<const double> values) {
  const auto histogram = histogram_of(values);
  if (histogram.count == 0) return {};
  return write(step, when,
               protobuf_message{}
                 .add_bytes(summary_field::value,
                            protobuf_message{}
                              .add_bytes(summary_field::tag, tag)
                              .add_bytes(summary_field::histogram, encode(histogram).bytes())
                              .bytes())
                 .bytes());
}

expected<void> event_file::write(uint64_t step, job_time when, const std::string& content) {
  const auto whole = protobuf_message{}
                       .add_double(event::wall_time, seconds_of(started_ + when))
                       .add_integer(event::step, step)
                       .add_bytes(event::summary, content);
  if (auto done = events_.append(tfrecord::frame(whole.bytes())); !done) return done;
  if (when - flushed_ < flush_interval) return {};
  flushed_ = when;
  return flush();
}

} // namespace troupe
