// SPDX-License-Identifier: Apache-2.0
// Walking a parsed TOML file, key by key, against the table of options.
#include "tools/options/config_file.hpp"

#include "tools/options/nearest_name.hpp"
#include "tools/options/option_table.hpp"
#include "tools/options/option_value.hpp"
#include "tools/system/file_content.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <toml++/toml.h>
#include <vector>

namespace troupe {

namespace {

constexpr uint64_t file_bytes_max = uint64_t{1} << 20;

struct reader {
  const std::string& path;
  train_options& options;
  option_origins& origins;

  expected<void> read(const toml::table& table, std::string_view section);
  expected<void> read_entry(std::string_view key, const toml::node& value,
                            std::string_view section);

  [[nodiscard]] std::string place(const toml::node& node) const {
    return fmt::format("{}:{}", path, node.source().begin.line);
  }

  [[nodiscard]] tl::unexpected<error> refuse(const toml::node& node,
                                             std::string_view sentence) const {
    return fail(errc::invalid_argument, fmt::format("{}: {}", place(node), sentence));
  }
};

bool is_section(std::string_view name) {
  const auto table = train_option_table();
  return std::any_of(table.begin(), table.end(), [&](const train_option& option) {
    return !option.section.empty() && option.section == name;
  });
}

// "batch", or "context in [model]".
std::string in_section(std::string_view key, std::string_view section) {
  return section.empty() ? fmt::format("'{}'", key) : fmt::format("'{}' in [{}]", key, section);
}

std::string unknown_key(std::string_view key, std::string_view section) {
  std::vector<std::string_view> names;
  for (const auto& option : train_option_table())
    names.push_back(option.key);
  const auto* nearest = find_train_option(nearest_name(key, names));
  return fmt::format("unknown key {}; the nearest known one is {}", in_section(key, section),
                     in_section(nearest->key, nearest->section));
}

bool is_number_target(const option_target& target) {
  return std::holds_alternative<option_member<uint64_t>>(target)
         || std::holds_alternative<option_member<int64_t>>(target)
         || std::holds_alternative<option_member<std::optional<uint64_t>>>(target)
         || std::holds_alternative<option_member<double>>(target)
         || std::holds_alternative<option_member<std::optional<double>>>(target);
}

bool is_list_of_pairs(const option_target& target) {
  return std::holds_alternative<option_member<std::vector<slow_replica>>>(target)
         || std::holds_alternative<option_member<std::vector<optimizer_setting>>>(target);
}

// A number of the file as text, for the one parser that all options go through.
std::optional<std::string> number_text(const toml::node& node) {
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  return std::nullopt;
}

// The texts that stand for a node, if it is of the TOML type that the option wants.
std::optional<std::vector<std::string>> texts_of(const toml::node& node,
                                                 const option_target& target) {
  std::vector<std::string> texts;
  if (std::holds_alternative<option_member<std::vector<int64_t>>>(target)) {
    if (!node.is_array()) return std::nullopt;
    std::string list;
    for (const auto& element : *node.as_array()) {
      const auto number = number_text(element);
      if (!number) return std::nullopt;
      list += (list.empty() ? "" : ",") + *number;
    }
    texts.push_back(list);
  } else if (is_list_of_pairs(target)) {
    if (!node.is_array()) return std::nullopt;
    for (const auto& element : *node.as_array()) {
      if (!element.is_string()) return std::nullopt;
      texts.push_back(element.as_string()->get());
    }
  } else if (is_number_target(target)) {
    const auto number = number_text(node);
    if (!number) return std::nullopt;
    texts.push_back(*number);
  } else {
    if (!node.is_string()) return std::nullopt;
    texts.push_back(node.as_string()->get());
  }
  return texts;
}

// What the file has to hold there, for the message about a wrong type.
std::string_view toml_type(const option_target& target) {
  if (std::holds_alternative<option_member<std::vector<int64_t>>>(target))
    return "a list of whole numbers, such as [256, 128]";
  if (is_list_of_pairs(target)) return "a list of texts, such as [\"3=2.5\"]";
  return is_number_target(target) ? "a number" : "a text in quotes";
}

std::string type_name(const toml::node& node) {
  switch (node.type()) {
  case toml::node_type::table:
    return "a table";
  case toml::node_type::array:
    return "a list";
  case toml::node_type::string:
    return "a text";
  case toml::node_type::integer:
  case toml::node_type::floating_point:
    return "a number";
  case toml::node_type::boolean:
    return "true or false";
  default:
    return "a date or time";
  }
}

expected<void> reader::read(const toml::table& table, std::string_view section) {
  for (const auto& [key, value] : table)
    if (auto done = read_entry(key.str(), value, section); !done) return done;
  return {};
}

expected<void> reader::read_entry(std::string_view key, const toml::node& value,
                                  std::string_view section) {
  if (section.empty() && is_section(key)) {
    if (!value.is_table())
      return refuse(value, fmt::format("[{}] must be a table, not {}", key, type_name(value)));
    return read(*value.as_table(), key);
  }
  const auto* option = find_train_option(key);
  if (option == nullptr || option->section != section)
    return refuse(value, unknown_key(key, section));
  const auto texts = texts_of(value, option->target);
  if (!texts)
    return refuse(value, fmt::format("{} must be {}, not {}", key, toml_type(option->target),
                                     type_name(value)));
  origins.insert_or_assign(std::string{key},
                           option_origin{option_origin::source::file, place(value)});
  return assign(*option, options, *texts, spelling(origins, key));
}

} // namespace

expected<void> read_config_file(const std::string& path, train_options& options,
                                option_origins& origins, std::string_view option) {
  const auto text = file_content(path, file_bytes_max);
  if (!text) return fail(text.error().code, fmt::format("{}: {}", option, text.error().message));
  return read_config(*text, path, options, origins);
}

expected<void> read_config(std::string_view toml, const std::string& path, train_options& options,
                           option_origins& origins) {
  try {
    const toml::table table = toml::parse(toml, path);
    return reader{path, options, origins}.read(table, "");
  } catch (const toml::parse_error& problem) {
    return fail(errc::invalid_argument,
                fmt::format("{}:{}: {}", path, problem.source().begin.line, problem.description()));
  }
}

} // namespace troupe
