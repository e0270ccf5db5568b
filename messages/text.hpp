// SPDX-License-Identifier: Apache-2.0
// Numbers and names in a text that people or programs have written.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace troupe {

/// The number that is the whole of a text, in decimal digits; zeros may lead. A minus sign goes
/// with signed types only. A floating-point number may have an exponent, or be "inf" or "nan".
/// Nothing for an empty text, blanks, a plus sign, and numbers that the type does not hold.
template <class Number>
[[nodiscard]] std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return number;
}

/// A text without the blanks at its beginning and its end.
[[nodiscard]] inline std::string_view trimmed(std::string_view text,
                                              std::string_view blanks = " \t\r\n") {
  auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// A name in lower case, for names that are known in any case.
[[nodiscard]] inline std::string lower_case(std::string_view name) {
  std::string result{name};
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

} // namespace troupe
