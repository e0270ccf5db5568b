// SPDX-License-Identifier: Apache-2.0
// The ranges of an optimizer's settings.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

namespace troupe {

/// The values that a setting may have; others would turn variables into NaN, or move them away from
/// the minimum. No range holds NaN or an infinity.
enum class setting_range : uint8_t {
  non_negative,   ///< 0 or more.
  non_positive,   ///< 0 or less.
  positive,       ///< More than 0.
  share,          ///< At least 0, at most 1.
  decay,          ///< At least 0, below 1: at 1 nothing new would ever come in.
  count,          ///< A whole number, which a double holds exactly.
  positive_count, ///< A whole number from 1 on, which a double holds exactly.
  flag,           ///< 0 or 1: off or on.
};

/// Whether a setting may be `value`.
[[nodiscard]] inline bool holds(setting_range range, double value) {
  switch (range) {
  case setting_range::non_negative:
    return value >= 0 && std::isfinite(value);
  case setting_range::non_positive:
    return value <= 0 && std::isfinite(value);
  case setting_range::positive:
    return value > 0 && std::isfinite(value);
  case setting_range::share:
    return value >= 0 && value <= 1;
  case setting_range::decay:
    return value >= 0 && value < 1;
  case setting_range::count:
    return value >= 0 && value < 0x1p53 && value == std::floor(value);
  case setting_range::positive_count:
    return value >= 1 && value < 0x1p53 && value == std::floor(value);
  case setting_range::flag:
    break;
  }
  return value == 0 || value == 1;
}

/// The range in words, after "it must be".
[[nodiscard]] constexpr std::string_view to_string(setting_range range) {
  constexpr std::string_view words[] = {"0 or a positive number", "0 or a negative number",
                                        "a positive number",      "at least 0 and at most 1",
                                        "at least 0 and below 1", "a whole number from 0",
                                        "a whole number from 1",  "0 or 1"};
  return words[static_cast<uint8_t>(range)];
}

} // namespace troupe
