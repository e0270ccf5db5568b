// SPDX-License-Identifier: Apache-2.0
// The choice of units and digits.
#include "actors/recording/readable.hpp"

#include "actors/recording/seconds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

namespace troupe::readable {

namespace {

// Three digits, as long as the number is below 1,000.
std::string three_digits(double number) {
  const double size = std::abs(number);
  if (size < 9.995) return fmt::format("{:.2f}", number);
  if (size < 99.95) return fmt::format("{:.1f}", number);
  return fmt::format("{:.0f}", number);
}

} // namespace

std::string count(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t position = digits.size(); position > 3;) {
    position -= 3;
    digits.insert(position, 1, ',');
  }
  return digits;
}

std::string duration(job_time time) {
  const auto nanoseconds = static_cast<double>(time.count());
  const double size = std::abs(nanoseconds);
  if (size < 1e3) return fmt::format("{} ns", time.count());
  if (size < 999.5e3) return three_digits(nanoseconds / 1e3) + " us";
  if (size < 999.5e6) return three_digits(nanoseconds / 1e6) + " ms";
  if (size < 99.95e9) return three_digits(nanoseconds / 1e9) + " s";
  const auto seconds = std::llround(nanoseconds / 1e9);
  if (std::llabs(seconds) < 3600)
    return fmt::format("{} min {:02} s", seconds / 60, std::llabs(seconds % 60));
  return fmt::format("{} h {:02} min", seconds / 3600, std::llabs(seconds / 60 % 60));
}

std::string duration(double seconds) {
  return duration(to_job_time(std::clamp(seconds, 0.0, 1e9)));
}

std::string clock(job_time time) {
  const auto seconds = std::chrono::round<std::chrono::seconds>(time).count();
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string quantity(double number) {
  if (!std::isfinite(number)) return "-";
  if (std::abs(number) < 999.5) return three_digits(number);
  if (std::abs(number) >= 1e15) return fmt::format("{:.3g}", number);
  const auto whole = std::llround(std::abs(number));
  return fmt::format("{}{}", number < 0 ? "-" : "", count(static_cast<uint64_t>(whole)));
}

} // namespace troupe::readable
