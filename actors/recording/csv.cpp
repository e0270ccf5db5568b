// SPDX-License-Identifier: Apache-2.0
// Quoting and number formats of comma-separated values.
#include "actors/recording/csv.hpp"

#include <cmath>
#include <fmt/format.h>

namespace troupe::csv {

std::string field(std::string_view text) {
  const bool blank_ends = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!blank_ends && text.find_first_of(",\"\r\n") == std::string_view::npos)
    return std::string{text};
  std::string quoted{"\""};
  for (char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

std::string field(double number) {
  return std::isfinite(number) ? fmt::format("{:.7g}", number) : std::string{};
}

std::string seconds(job_time time) {
  constexpr int64_t nanoseconds_per_second = 1'000'000'000;
  const int64_t count = time.count();
  const int64_t whole = count / nanoseconds_per_second;
  const int64_t rest = count % nanoseconds_per_second;
  const char* sign = count < 0 ? "-" : "";
  auto text = fmt::format("{}{}.{:09}", sign, whole < 0 ? -whole : whole, rest < 0 ? -rest : rest);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string line(std::initializer_list<std::string_view> fields) {
  return fmt::format("{}\n", fmt::join(fields, ","));
}

} // namespace troupe::csv
