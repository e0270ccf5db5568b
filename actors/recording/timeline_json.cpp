// SPDX-License-Identifier: Apache-2.0
// Formatting trace events, one function for each phase letter.
#include "actors/recording/timeline_json.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::timeline_json {

namespace {

constexpr int process = 1; // The format wants a process; a job is shown as one.

std::string microseconds(job_time time) {
  const int64_t count = time.count();
  return fmt::format("{}{}.{:03}", count < 0 ? "-" : "", std::llabs(count / 1000),
                     std::llabs(count % 1000));
}

std::string metadata(std::string_view key, track_number track, std::string_view arguments) {
  return fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", process, track,
                     key, arguments);
}

// The beginning of every event of a track.
std::string head(char phase, track_number track, job_time when) {
  return fmt::format(R"({{"ph":"{}","pid":{},"tid":{},"ts":{})", phase, process, track,
                     microseconds(when));
}

std::string flow_end_point(char phase, track_number track, const timeline_event& event) {
  // "bp":"e" ties the arrow's end to the span that encloses it, not to the next one.
  return fmt::format(
    R"({},"cat":"flow","name":"gradient to token","id":{}{},"args":{{"what":{},"step":{}}}}})",
    head(phase, track, event.start), event.flow, phase == 'f' ? R"(,"bp":"e")" : "",
    string(event.name), event.step);
}

} // namespace

std::string string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string job_name(std::string_view name) {
  return metadata("process_name", 0, fmt::format(R"("name":{})", string(name)));
}

std::string track_name(track_number track, std::string_view name) {
  return metadata("thread_name", track, fmt::format(R"("name":{})", string(name))) + ",\n"
         + metadata("thread_sort_index", track, fmt::format(R"("sort_index":{})", track));
}

std::string event(track_number track, const timeline_event& event) {
  switch (event.what) {
  case timeline_event::kind::flow_start:
    return flow_end_point('s', track, event);
  case timeline_event::kind::flow_end:
    return flow_end_point('f', track, event);
  case timeline_event::kind::instant:
    return fmt::format(R"({},"s":"t","name":{},"args":{{"step":{}}}}})",
                       head('i', track, event.start), string(event.name), event.step);
  case timeline_event::kind::span:
    break;
  }
  return fmt::format(R"({},"dur":{},"name":{},"args":{{"step":{}}}}})",
                     head('X', track, event.start), microseconds(event.duration),
                     string(event.name), event.step);
}

std::string note(job_time when, std::string_view sentence) {
  return fmt::format(R"({},"s":"g","name":{}}})", head('i', 0, when), string(sentence));
}

} // namespace troupe::timeline_json
