// SPDX-License-Identifier: Apache-2.0
// Expands brackets and repetitions.
#include "strategies/cluster/host_list.hpp"

#include "actors/net/host_port.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

using names = std::vector<std::string>;

constexpr ptrdiff_t brackets_max = 8; // of a name
constexpr uint64_t number_max = 999'999'999;

tl::unexpected<error> malformed(std::string_view text, std::string_view reason) {
  return fail(errc::invalid_argument, fmt::format("malformed host list '{}': {}", text, reason));
}

// Splits at commas outside brackets. Parts are empty where a comma has nothing on one side.
names split_list(std::string_view text) {
  names parts{""};
  int depth = 0;
  for (char letter : text) {
    if (letter == '[') ++depth;
    if (letter == ']') --depth;
    if (letter == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

// "08-10,12"
expected<names> expand_numbers(std::string_view text) {
  names numbers;
  for (std::string_view part : split_list(text)) {
    if (part.empty()) return malformed(fmt::format("[{}]", text), "a number is missing");
    auto first = part.substr(0, part.find('-'));
    auto last = first.size() == part.size() ? first : part.substr(first.size() + 1);
    auto low = parse_count(first, number_max);
    auto high = parse_count(last, number_max);
    if (!low || !high) return malformed(part, "brackets hold numbers and ranges, as in [1-3,7]");
    if (*low > *high) return malformed(part, "this range ends before it begins");
    if (numbers.size() + (*high - *low) >= launcher_number_max)
      return malformed(part, "so many hosts there are not");
    for (auto number = *low; number <= *high; ++number)
      numbers.push_back(fmt::format("{:0{}}", number, first.size()));
  }
  return numbers;
}

// "rack[1-2]n[1-3]"
expected<names> expand_host(std::string_view text) {
  auto open = text.find('[');
  auto close = text.find(']');
  if (open == std::string_view::npos && close == std::string_view::npos)
    return names{std::string{text}};
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return malformed(text, "a bracket is missing");
  auto numbers = expand_numbers(text.substr(open + 1, close - open - 1));
  if (!numbers) return numbers;
  auto endings = expand_host(text.substr(close + 1));
  if (!endings) return endings;
  if (numbers->size() * endings->size() > launcher_number_max)
    return malformed(text, "so many hosts there are not");
  names hosts;
  for (const auto& number : *numbers)
    for (const auto& ending : *endings)
      hosts.push_back(fmt::format("{}{}{}", text.substr(0, open), number, ending));
  return hosts;
}

} // namespace

expected<std::vector<std::string>> expand_hostlist(std::string_view text) {
  names hosts;
  if (text.empty()) return hosts;
  for (const auto& part : split_list(text)) {
    if (part.empty()) return malformed(text, "a host is missing beside a comma");
    if (std::ranges::count(part, '[') > brackets_max)
      return malformed(part, fmt::format("a name has at most {} brackets", brackets_max));
    auto expanded = expand_host(part);
    if (!expanded) return expanded;
    std::ranges::move(*expanded, std::back_inserter(hosts));
    if (hosts.size() > launcher_number_max) return malformed(part, "so many hosts there are not");
  }
  return hosts;
}

expected<std::vector<uint64_t>> expand_tasks_per_node(std::string_view text) {
  std::vector<uint64_t> counts;
  uint64_t tasks = 0;
  auto refuse = [&](std::string_view part) {
    return fail(errc::invalid_argument,
                fmt::format("malformed tasks per node '{}': it must be as in 2(x3),1", part));
  };
  for (std::string_view part : split_list(text)) {
    if (part.empty()) return refuse(text);
    auto open = std::min(part.find("(x"), part.size());
    auto count = parse_count(part.substr(0, open), number_max);
    expected<uint64_t> times{1};
    if (open < part.size()) {
      if (!part.ends_with(')')) return refuse(part);
      times = parse_count(part.substr(open + 2, part.size() - open - 3), launcher_number_max);
    }
    if (!count || !times || counts.size() + *times > launcher_number_max) return refuse(part);
    tasks += *times * *count;
    if (tasks > launcher_number_max)
      return fail(errc::invalid_argument,
                  fmt::format("tasks per node '{}': these are more than {} tasks", part,
                              launcher_number_max));
    counts.insert(counts.end(), *times, *count);
  }
  return counts;
}

} // namespace troupe
