// SPDX-License-Identifier: Apache-2.0
// The origin of each option's value, for messages and dumps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace troupe {

/// The source of an option's value. Later enumerators override earlier ones.
struct option_origin {
  enum class source : uint8_t { standard, file, command_line };
  source from = source::standard;
  std::string place; ///< For a file: "run.toml:3".
};

/// Origins by option key; an option that is not listed has its default.
using option_origins = std::map<std::string, option_origin, std::less<>>;

/// The origin of an option's value.
[[nodiscard]] option_origin origin_of(const option_origins& origins, std::string_view key);

/// "default", "run.toml:3" or "command line".
[[nodiscard]] std::string describe(const option_origin& origin);

/// The option as the user spelt it, for messages: "run.toml:3: batch" or "--batch".
[[nodiscard]] std::string spelling(const option_origins& origins, std::string_view key);

} // namespace troupe
