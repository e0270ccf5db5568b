// SPDX-License-Identifier: Apache-2.0
// Writes and parses the lines between launchers.
#include "tools/launch/output_protocol.hpp"

#include "actors/net/host_port.hpp"
#include "messages/errors/assert.hpp"
#include "tools/launch/command_line.hpp"

#include <fmt/format.h>
#include <limits>

namespace troupe {

namespace {

constexpr std::string_view greeting_begin = "troupe-output 1 ";
constexpr std::string_view dropped_begin = "dropped ";

tl::unexpected<error> no_such_line(std::string_view kind) {
  return fail(errc::invalid_argument, fmt::format("this is no {} of a launcher", kind));
}

} // namespace

std::string written(const output_greeting& greeting) {
  return fmt::format("{}{} {}\n", greeting_begin, greeting.task.name(), greeting.job_id);
}

std::string written(const output_line& line) {
  TROUPE_ASSERT(line.text.find('\n') == std::string::npos, line.text.size());
  if (line.descriptor == 0) return fmt::format("{}{}\n", dropped_begin, line.dropped);
  return fmt::format("{} {}\n", line.descriptor, line.text);
}

expected<output_greeting> parse_output_greeting(std::string_view text) {
  if (!text.starts_with(greeting_begin)) return no_such_line("greeting");
  text.remove_prefix(greeting_begin.size());
  auto space = text.find(' ');
  if (space == text.npos) return no_such_line("greeting");
  std::string job_id{text.substr(space + 1)};
  if (!job_id.empty() && !is_job_id(job_id)) return no_such_line("greeting");
  return parse_task_name(text.substr(0, space)).map([&](const launch_task& task) {
    return output_greeting{task, job_id};
  });
}

expected<output_line> parse_output_line(std::string_view text) {
  if (text.starts_with("1 ") || text.starts_with("2 "))
    return output_line{.descriptor = text[0] - '0', .text = std::string{text.substr(2)}};
  if (!text.starts_with(dropped_begin)) return no_such_line("line");
  auto count = parse_count(text.substr(dropped_begin.size()), std::numeric_limits<uint64_t>::max());
  return count.map([](uint64_t dropped) { return output_line{.dropped = dropped}; });
}

std::string dropped_text(const std::string& task, uint64_t count) {
  return fmt::format("{} {} of {} dropped: the connection between the launchers was too slow",
                     count, count == 1 ? "line" : "lines", task);
}

} // namespace troupe
