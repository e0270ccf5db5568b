// SPDX-License-Identifier: Apache-2.0
// Parsing and printing the values of options.
#include "tools/options/option_value.hpp"

#include "actors/recording/readable.hpp"
#include "tools/options/arguments.hpp"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <type_traits>

namespace troupe {

namespace {

template <class... Functions>
struct overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

bool accepts(const option_range& range, double number) {
  const bool high_enough = range.above_low ? number > range.low : number >= range.low;
  const bool low_enough = range.below_high ? number < range.high : number <= range.high;
  return high_enough && low_enough;
}

std::optional<uint64_t> count_of(std::string_view text, const option_range& range) {
  const auto number = number_of<int64_t>(text);
  if (!number || !accepts(range, static_cast<double>(*number))) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

std::optional<double> real_of(std::string_view text, const option_range& range) {
  const auto number = number_of<double>(text);
  return number && accepts(range, *number) ? number : std::nullopt;
}

std::optional<std::vector<int64_t>> counts_of(std::string_view text, const option_range& range) {
  std::vector<int64_t> counts;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto count = count_of(text.substr(0, comma), range);
    if (!count) return std::nullopt;
    counts.push_back(static_cast<int64_t>(*count));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return counts;
}

std::optional<slow_replica> slow_replica_of(std::string_view text, const option_range& factors) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const auto replica = count_of(text.substr(0, equals), {0, 1e9});
  const auto factor = real_of(text.substr(equals + 1), factors);
  if (!replica || !factor) return std::nullopt;
  return slow_replica{*replica, *factor};
}

std::optional<optimizer_setting> optimizer_setting_of(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  const auto value = number_of<double>(text.substr(equals + 1));
  if (!value) return std::nullopt;
  return optimizer_setting{std::string{text.substr(0, equals)}, *value};
}

// Adds what was parsed, if it was.
template <class T>
bool append(std::vector<T>& list, std::optional<T> parsed) {
  if (parsed) list.push_back(std::move(*parsed));
  return parsed.has_value();
}

// Stores what was parsed, if it was.
template <class T, class Parsed>
bool store(T& place, const std::optional<Parsed>& parsed) {
  if (parsed) place = static_cast<T>(*parsed);
  return parsed.has_value();
}

bool choose(const option_choice& choice, train_options& options, std::string_view text) {
  for (size_t i = 0; i < choice.names.size(); ++i) {
    if (choice.names[i] != text) continue;
    choice.set(options, i);
    return true;
  }
  return false;
}

// Takes one text; false if it is no value of the option.
bool take(const train_option& option, train_options& options, const std::string& text) {
  const auto& range = option.range;
  return std::visit(
    overloaded{
      [&](option_member<std::string> member) {
        member(options) = text;
        return !text.empty();
      },
      [&](option_member<uint64_t> member) { return store(member(options), count_of(text, range)); },
      [&](option_member<int64_t> member) { return store(member(options), count_of(text, range)); },
      [&](option_member<std::optional<uint64_t>> member) {
        return store(member(options), count_of(text, range));
      },
      [&](option_member<double> member) { return store(member(options), real_of(text, range)); },
      [&](option_member<std::optional<double>> member) {
        return store(member(options), real_of(text, range));
      },
      [&](option_member<std::vector<int64_t>> member) {
        return store(member(options), counts_of(text, range));
      },
      [&](option_member<std::vector<slow_replica>> member) {
        return append(member(options), slow_replica_of(text, range));
      },
      [&](option_member<std::vector<optimizer_setting>> member) {
        return append(member(options), optimizer_setting_of(text));
      },
      [&](const option_choice& choice) { return choose(choice, options, text); },
    },
    option.target);
}

std::string bound_text(double bound) {
  const bool is_whole = bound >= 0 && bound == std::floor(bound);
  return is_whole ? readable::count(static_cast<uint64_t>(bound)) : fmt::format("{:g}", bound);
}

std::string range_text(const option_range& range) {
  if (!range.above_low && !range.below_high)
    return fmt::format("from {} to {}", bound_text(range.low), bound_text(range.high));
  return fmt::format("{} {} and {} {}", range.above_low ? "above" : "of at least",
                     bound_text(range.low), range.below_high ? "below" : "at most",
                     bound_text(range.high));
}

std::string toml_quoted(std::string_view text) {
  std::string result{'"'};
  for (char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\')
      result.append({'\\', letter});
    else if (code < 0x20 || code == 0x7f)
      result += fmt::format("\\u{:04x}", code);
    else
      result += letter;
  }
  return result + '"';
}

// Joins what `print` makes of each element.
template <class T, class Print>
std::string joined(const std::vector<T>& elements, std::string_view separator, Print print) {
  std::string text;
  for (const auto& element : elements) {
    if (!text.empty()) text += separator;
    text += print(element);
  }
  return text;
}

std::string pair_text(const slow_replica& slow) {
  return fmt::format("{}={}", slow.replica, slow.factor);
}

std::string pair_text(const optimizer_setting& setting) {
  return fmt::format("{}={}", setting.name, setting.value);
}

} // namespace

expected<void> assign(const train_option& option, train_options& options,
                      std::span<const std::string> texts, const std::string& name) {
  if (const auto* slow = std::get_if<option_member<std::vector<slow_replica>>>(&option.target))
    (*slow)(options).clear();
  if (const auto* set = std::get_if<option_member<std::vector<optimizer_setting>>>(&option.target))
    (*set)(options).clear();
  for (const auto& text : texts) {
    if (!take(option, options, text))
      return fail(errc::invalid_argument,
                  fmt::format("{} must be {}, not '{}'", name, value_description(option), text));
  }
  return {};
}

std::string value_description(const train_option& option) {
  const auto range = range_text(option.range);
  return std::visit(
    overloaded{
      [&](option_member<std::string>) { return std::string{"a text"}; },
      [&](option_member<uint64_t>) { return "a whole number " + range; },
      [&](option_member<int64_t>) { return "a whole number " + range; },
      [&](option_member<std::optional<uint64_t>>) { return "a whole number " + range; },
      [&](option_member<double>) { return "a number " + range; },
      [&](option_member<std::optional<double>>) { return "a number " + range; },
      [&](option_member<std::vector<int64_t>>) {
        return fmt::format("whole numbers {}, separated by commas", range);
      },
      [&](option_member<std::vector<slow_replica>>) {
        return fmt::format("REPLICA=FACTOR, such as 3=2.5, with a factor {}", range);
      },
      [&](option_member<std::vector<optimizer_setting>>) {
        return std::string{"NAME=NUMBER, such as beta1=0.8"};
      },
      [&](const option_choice& choice) {
        const std::vector<std::string_view> names{choice.names.begin(), choice.names.end()};
        return "one of " + joined(names, ", ", [](auto name) { return std::string{name}; });
      },
    },
    option.target);
}

std::string toml_text(const train_option& option, const train_options& options) {
  auto values = options;
  const auto print_count = [](int64_t count) { return std::to_string(count); };
  const auto print_pair = [](const auto& pair) { return toml_quoted(pair_text(pair)); };
  return std::visit(
    overloaded{
      [&](option_member<std::string> member) {
        return member(values).empty() ? std::string{} : toml_quoted(member(values));
      },
      [&](option_member<std::vector<int64_t>> member) {
        return fmt::format("[{}]", joined(member(values), ", ", print_count));
      },
      [&](option_member<std::vector<slow_replica>> member) {
        return fmt::format("[{}]", joined(member(values), ", ", print_pair));
      },
      [&](option_member<std::vector<optimizer_setting>> member) {
        return fmt::format("[{}]", joined(member(values), ", ", print_pair));
      },
      [&](const option_choice& choice) { return toml_quoted(choice.names[choice.get(values)]); },
      [&](auto) { return plain_text(option, options); },
    },
    option.target);
}

std::string plain_text(const train_option& option, const train_options& options) {
  auto values = options;
  const auto if_any
    = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string{}; };
  const auto print_count = [](int64_t count) { return std::to_string(count); };
  const auto print_pair = [](const auto& pair) { return pair_text(pair); };
  return std::visit(
    overloaded{
      [&](option_member<std::string> member) { return member(values); },
      [&](option_member<uint64_t> member) { return std::to_string(member(values)); },
      [&](option_member<int64_t> member) { return std::to_string(member(values)); },
      [&](option_member<double> member) { return fmt::format("{}", member(values)); },
      [&](option_member<std::optional<uint64_t>> member) { return if_any(member(values)); },
      [&](option_member<std::optional<double>> member) { return if_any(member(values)); },
      [&](option_member<std::vector<int64_t>> member) {
        return joined(member(values), ",", print_count);
      },
      [&](option_member<std::vector<slow_replica>> member) {
        return joined(member(values), " ", print_pair);
      },
      [&](option_member<std::vector<optimizer_setting>> member) {
        return joined(member(values), " ", print_pair);
      },
      [&](const option_choice& choice) { return std::string{choice.names[choice.get(values)]}; },
    },
    option.target);
}

} // namespace troupe
