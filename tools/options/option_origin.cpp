// SPDX-License-Identifier: Apache-2.0
// Origins of options in words.
#include "tools/options/option_origin.hpp"

#include <fmt/format.h>

namespace troupe {

option_origin origin_of(const option_origins& origins, std::string_view key) {
  const auto found = origins.find(key);
  return found == origins.end() ? option_origin{} : found->second;
}

std::string describe(const option_origin& origin) {
  switch (origin.from) {
  case option_origin::source::file:
    return origin.place;
  case option_origin::source::command_line:
    return "command line";
  case option_origin::source::standard:
    break;
  }
  return "default";
}

std::string spelling(const option_origins& origins, std::string_view key) {
  const auto origin = origin_of(origins, key);
  if (origin.from == option_origin::source::file) return fmt::format("{}: {}", origin.place, key);
  return fmt::format("--{}", key);
}

} // namespace troupe
