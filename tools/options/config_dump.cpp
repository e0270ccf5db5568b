// SPDX-License-Identifier: Apache-2.0
// Printing the table of options with its values.
#include "tools/options/config_dump.hpp"

#include "tools/options/option_table.hpp"
#include "tools/options/option_value.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

std::string entry(const train_option& option, const train_options& options,
                  const option_origins& origins, bool as_comment) {
  const auto value = toml_text(option, options);
  if (value.empty()) return fmt::format("# {}: {}\n", option.key, option.when_empty);
  auto setting = fmt::format("{}{} = {}", as_comment ? "# " : "", option.key, value);
  return fmt::format("{:<46}  # {}\n", setting, describe(origin_of(origins, option.key)));
}

} // namespace

std::string config_text(const train_options& options, const option_origins& origins,
                        bool with_run_dir) {
  std::string text = "# Options of `troupe train`; read back by: troupe train --config FILE\n";
  std::string sections;
  std::string_view section;
  for (const auto& option : train_option_table()) {
    if (!has_meaning(option, options.strategy)) continue;
    const bool as_comment = option.key == "run-dir" && !with_run_dir;
    const auto line = entry(option, options, origins, as_comment);
    if (option.section.empty()) {
      text += line;
      continue;
    }
    // Tables come last in TOML: what follows a heading belongs to it.
    if (option.section != section) sections += fmt::format("\n[{}]\n", option.section);
    section = option.section;
    sections += line;
  }
  return text + sections;
}

} // namespace troupe
