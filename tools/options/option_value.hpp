// SPDX-License-Identifier: Apache-2.0
// Reads values of options from texts, and writes them: alike on command lines and in files.
#pragma once

#include "messages/errors/errc.hpp"
#include "messages/mapped.hpp"
#include "messages/text.hpp"

#include <chrono>
#include <cstdint>
#include <fmt/ranges.h>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// An invalid_argument. @param line Names the wrong option and how to mend it.
[[nodiscard]] inline tl::unexpected<error> misuse(std::string line) {
  return fail(errc::invalid_argument, std::move(line));
}

/// The same failure, of an option or a file. @param place Begins the line, before a colon.
[[nodiscard]] inline tl::unexpected<error> fail_at(std::string_view place, const error& reason) {
  return fail(reason.code, fmt::format("{}: {}", place, reason.message));
}

/// The numbers that an option accepts, ends included unless said otherwise.
struct option_range {
  double low = 0;
  double high = 0;
  bool above_low = false;  ///< `low` itself is not accepted.
  bool below_high = false; ///< `high` itself is not accepted.
};

/// The numbers above `low`, up to `high`.
[[nodiscard]] constexpr option_range above(double low, double high) {
  return {.low = low, .high = high, .above_low = true};
}

/// The number that a text is, if it is in the range.
[[nodiscard]] std::optional<uint64_t> whole_of(std::string_view text, const option_range& range);
[[nodiscard]] std::optional<double> real_of(std::string_view text, const option_range& range);

/// The name before the equals sign, and the result of `read` for the text behind it.
template <class Read>
[[nodiscard]] auto pair_of(std::string_view text, Read read)
  -> std::optional<std::pair<std::string_view, typename decltype(read(text))::value_type>> {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  const auto value = read(text.substr(equals + 1));
  if (!value) return std::nullopt;
  return std::pair{text.substr(0, equals), *value};
}

/// The range in words: "from 1 to 1,000", "above 0 and at most 5".
[[nodiscard]] std::string to_string(const option_range& range);

/// The type that a TOML file has to give a value: `any` is a number, a text, or true or false.
enum class toml_form : uint8_t { text, number, whole_numbers, texts, any, text_or_texts };

/// Reads and writes the value of one option, wherever it is stored. The functions refer to that
/// place, which must outlive them.
struct option_value {
  using text_list = std::vector<std::string>;

  /// Stores a value. @param texts One text for each time that the option was given, of which only a
  /// list keeps more than the last; without texts the option has no value afterwards.
  /// Errors: invalid_argument; the message goes on where the name of the option ends:
  /// " must be ...", " needs a value" or ": ...".
  std::function<expected<void>(const text_list& texts)> store;

  /// The texts that `store` would take for the present value; none: there is no value.
  std::function<text_list()> texts;

  toml_form form = toml_form::text;
  bool may_be_empty = false; ///< Whether an empty argument is a value, and not a missing one.
};

/// The type inside of an optional, and any other type itself.
template <class T>
struct value_inside {
  using type = T;
};

template <class T>
struct value_inside<std::optional<T>> {
  using type = T;
};

/// A single value. @param must_be Completes the sentence "--option must be ...".
/// @param read Makes an optional value of a text. @param write Makes a text of a value.
template <class T, class Read, class Write>
[[nodiscard]] option_value single_value(T& place, toml_form form, std::string must_be, Read read,
                                        Write write) {
  using value_type = typename value_inside<T>::type;
  auto store = [&place, must_be, read](const option_value::text_list& texts) -> expected<void> {
    if (texts.empty()) {
      place = T{};
      return {};
    }
    auto value = read(texts.back());
    if (!value) return misuse(fmt::format(" must be {}, not '{}'", must_be, texts.back()));
    place = static_cast<value_type>(*value);
    return {};
  };
  auto texts = [&place, write]() -> option_value::text_list {
    if constexpr (std::is_same_v<T, value_type>)
      return {write(place)};
    else
      return place ? option_value::text_list{write(*place)} : option_value::text_list{};
  };
  return {store, texts, form};
}

/// The same value, but never shown: `when_empty` describes its default.
[[nodiscard]] inline option_value unwritten(option_value value) {
  value.texts = [] { return option_value::text_list{}; };
  return value;
}

/// Any text but an empty one, which stands for no value.
[[nodiscard]] option_value text_value(std::string& place);

/// Any text; in a file or a sweep, an empty one stands for no value.
[[nodiscard]] option_value text_or_none_value(std::string& place);

/// Any text; on a command line, too, it may be empty.
[[nodiscard]] option_value any_text_value(std::string& place);

/// A whole number, or an optional one. @param must_be Instead of "a whole number" with the range.
template <class T>
[[nodiscard]] option_value whole_value(T& place, option_range range, std::string must_be = {}) {
  if (must_be.empty()) must_be = "a whole number " + to_string(range);
  return single_value(
    place, toml_form::number, must_be,
    [range](std::string_view text) { return whole_of(text, range); },
    [](auto number) { return fmt::format("{}", number); });
}

/// A number that need not be whole, or an optional one. @param unit Stands before the range.
template <class T>
[[nodiscard]] option_value real_value(T& place, option_range range,
                                      std::string_view unit = "a number") {
  return single_value(
    place, toml_form::number, fmt::format("{} {}", unit, to_string(range)),
    [range](std::string_view text) { return real_of(text, range); },
    [](double number) { return fmt::format("{}", number); });
}

/// A duration. Units: seconds.
template <class Duration>
[[nodiscard]] option_value seconds_value(Duration& place, option_range range) {
  using seconds = std::chrono::duration<double>;
  return single_value(
    place, toml_form::number, "seconds " + to_string(range),
    [range](std::string_view text) -> std::optional<Duration> {
      auto number = real_of(text, range);
      if (!number) return std::nullopt;
      return std::chrono::round<Duration>(seconds{*number});
    },
    [](Duration time) { return fmt::format("{}", seconds{time}.count()); });
}

/// One of several names: an enumeration with values from 0 in the order of `names`, which
/// must outlive the value.
template <class T>
[[nodiscard]] option_value choice_value(T& place, std::span<const std::string_view> names) {
  return single_value(
    place, toml_form::text, fmt::format("one of {}", fmt::join(names, ", ")),
    [names](std::string_view text) {
      for (size_t i = 0; i < names.size(); ++i)
        if (names[i] == text) return std::optional{i};
      return std::optional<size_t>{};
    },
    [names](T value) { return std::string{names[static_cast<size_t>(value)]}; });
}

/// Whole numbers, separated by commas.
[[nodiscard]] option_value whole_numbers_value(std::vector<int64_t>& place, option_range range);

/// A list of which each text is one element. @param must_be, read, write As in `single_value`.
template <class T, class Read, class Write>
[[nodiscard]] option_value list_value(std::vector<T>& place, std::string must_be, Read read,
                                      Write write) {
  auto store = [&place, must_be, read](const option_value::text_list& texts) -> expected<void> {
    place.clear();
    for (const auto& text : texts) {
      std::optional<T> element = read(text);
      if (!element) return misuse(fmt::format(" must be {}, not '{}'", must_be, text));
      place.push_back(std::move(*element));
    }
    return {};
  };
  auto texts = [&place, write] { return mapped<std::string>(place, write); };
  return {store, texts, toml_form::texts};
}

/// A value that `parse` makes of a text, with an error that goes on behind the option's name and a
/// colon. It is never written. @param parse Gives an `expected<T>`.
template <class T, class Parse>
[[nodiscard]] option_value parsed_value(T& place, Parse parse) {
  auto store = [&place, parse](const option_value::text_list& texts) -> expected<void> {
    if (texts.empty()) {
      place = T{};
      return {};
    }
    auto value = parse(texts.back());
    if (!value) return fail(value.error().code, ": " + value.error().message);
    place = std::move(*value);
    return {};
  };
  return unwritten({store, {}, toml_form::any});
}

} // namespace troupe
