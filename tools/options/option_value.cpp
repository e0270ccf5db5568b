// SPDX-License-Identifier: Apache-2.0
// Reads numbers and texts, and describes ranges.
#include "tools/options/option_value.hpp"

#include "actors/recording/readable.hpp"

#include <cmath>

namespace troupe {

namespace {

// A long double holds every whole number of 64 bits, which a double does not.
bool accepts(const option_range& range, long double number) {
  const bool high_enough = range.above_low ? number > range.low : number >= range.low;
  const bool low_enough = range.below_high ? number < range.high : number <= range.high;
  return high_enough && low_enough;
}

std::string bound_text(double bound) {
  const bool is_whole = bound >= 0 && bound < 1e19 && bound == std::floor(bound);
  return is_whole ? readable::count(static_cast<uint64_t>(bound)) : fmt::format("{:g}", bound);
}

} // namespace

std::optional<uint64_t> whole_of(std::string_view text, const option_range& range) {
  const auto number = number_of<uint64_t>(text);
  return number && accepts(range, static_cast<long double>(*number)) ? number : std::nullopt;
}

std::optional<double> real_of(std::string_view text, const option_range& range) {
  const auto number = number_of<double>(text);
  return number && accepts(range, *number) ? number : std::nullopt;
}

std::string to_string(const option_range& range) {
  if (!range.above_low && !range.below_high)
    return fmt::format("from {} to {}", bound_text(range.low), bound_text(range.high));
  return fmt::format("{} {} and {} {}", range.above_low ? "above" : "of at least",
                     bound_text(range.low), range.below_high ? "below" : "at most",
                     bound_text(range.high));
}

option_value text_value(std::string& place) {
  auto value = text_or_none_value(place);
  value.store = [store = value.store](const option_value::text_list& texts) -> expected<void> {
    if (!texts.empty() && texts.back().empty()) return misuse(" needs a value");
    return store(texts);
  };
  return value;
}

option_value text_or_none_value(std::string& place) {
  auto store = [&place](const option_value::text_list& texts) -> expected<void> {
    place = texts.empty() ? std::string{} : texts.back();
    return {};
  };
  auto texts = [&place] {
    return place.empty() ? option_value::text_list{} : option_value::text_list{place};
  };
  return {store, texts, toml_form::text};
}

option_value any_text_value(std::string& place) {
  auto value = text_or_none_value(place);
  value.may_be_empty = true;
  return value;
}

option_value whole_numbers_value(std::vector<int64_t>& place, option_range range) {
  auto read = [range](std::string_view text) -> std::optional<std::vector<int64_t>> {
    std::vector<int64_t> numbers;
    if (text.empty()) return numbers;
    for (size_t begin = 0, comma = 0; comma != std::string_view::npos; begin = comma + 1) {
      comma = text.find(',', begin);
      const auto number = whole_of(trimmed(text.substr(begin, comma - begin)), range);
      if (!number) return std::nullopt;
      numbers.push_back(static_cast<int64_t>(*number));
    }
    return numbers;
  };
  return single_value(place, toml_form::whole_numbers,
                      fmt::format("whole numbers {}, separated by commas", to_string(range)), read,
                      [](const auto& all) { return fmt::format("{}", fmt::join(all, ",")); });
}

} // namespace troupe
