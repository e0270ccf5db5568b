// SPDX-License-Identifier: Apache-2.0
// Compares a parsed TOML file, key by key, with the options of a command.
#include "tools/options/config_file.hpp"

#include "messages/errors/printable.hpp"
#include "tools/options/nearest_name.hpp"
#include "tools/system/file_content.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <fstream>
#include <optional>
#include <vector>

namespace troupe {

namespace {

constexpr std::string_view program_line_begin = "# Options of `";
constexpr std::string_view end_line = "# end of the options";
constexpr std::string_view end_promise = "; its last line: ";

constexpr uint64_t file_bytes_max = uint64_t{1} << 20;

using text_list = option_value::text_list;

/// Stores the values of a file, table by table.
struct reader {
  const std::string& path;
  command_options& options;
  other_key other;
  bool only_known = false; ///< Whether keys that are no option are passed over.

  expected<void> read(const toml::table& table, std::string_view section);
  expected<void> read_entry(std::string_view key, const toml::node& value,
                            std::string_view section);
  [[nodiscard]] std::string unknown_key(std::string_view key, std::string_view section) const;

  [[nodiscard]] std::string place(const toml::node& node) const {
    return fmt::format("{}:{}", path, node.source().begin.line);
  }

  [[nodiscard]] tl::unexpected<error> refuse(const toml::node& node,
                                             std::string_view sentence) const {
    return misuse(fmt::format("{}: {}", place(node), sentence));
  }
};

// "'batch'", or "'context' in [model]".
std::string in_section(std::string_view key, std::string_view section) {
  return section.empty() ? fmt::format("'{}'", key) : fmt::format("'{}' in [{}]", key, section);
}

std::string reader::unknown_key(std::string_view key, std::string_view section) const {
  if (const auto* known = options.find(key); known != nullptr && !known->in_files)
    return fmt::format("{} stands on the command line only", in_section(key, section));
  std::vector<std::string_view> names;
  for (const auto& option : options.options())
    if (option.in_files) names.push_back(option.key);
  if (!other.key.empty()) names.push_back(other.key);
  const auto nearest = nearest_name(key, names);
  const auto* option = options.find(nearest);
  return fmt::format("unknown key {}; the nearest known one is {}", in_section(key, section),
                     in_section(nearest, option == nullptr ? "" : option->section));
}

// A number of the file as text, for the one parser that all options go through.
std::optional<std::string> number_text(const toml::node& node) {
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  return std::nullopt;
}

std::optional<std::string> any_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "on" : "off";
  return number_text(node);
}

// The texts of a node, as the option's `store` takes them; nothing if its TOML type is wrong.
std::optional<text_list> texts_of(const toml::node& node, toml_form form) {
  if (form == toml_form::text_or_texts)
    return texts_of(node, node.is_array() ? toml_form::texts : toml_form::text);
  if (form == toml_form::whole_numbers || form == toml_form::texts) {
    if (!node.is_array()) return std::nullopt;
    text_list texts;
    for (const auto& element : *node.as_array()) {
      auto text
        = form == toml_form::texts ? element.value_exact<std::string>() : number_text(element);
      if (!text) return std::nullopt;
      texts.push_back(std::move(*text));
    }
    if (form == toml_form::texts || texts.empty()) return texts;
    return text_list{fmt::format("{}", fmt::join(texts, ","))};
  }
  auto text = form == toml_form::any      ? any_text(node)
              : form == toml_form::number ? number_text(node)
                                          : node.value_exact<std::string>();
  return text ? std::optional{text_list{std::move(*text)}} : std::nullopt;
}

std::string_view type_name(toml_form form) {
  constexpr std::string_view names[] = {"a text in quotes",
                                        "a number",
                                        "a list of whole numbers, such as [256, 128]",
                                        "a list of texts, such as [\"3=2.5\"]",
                                        "a number or a text in quotes",
                                        "a text in quotes, or a list of texts"};
  return names[static_cast<size_t>(form)];
}

std::string_view type_name(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (node.is_string()) return "a text";
  if (node.is_number()) return "a number";
  return node.is_boolean() ? "true or false" : "a date or time";
}

expected<void> reader::read(const toml::table& table, std::string_view section) {
  for (const auto& [key, value] : table)
    if (auto done = read_entry(key.str(), value, section); !done) return done;
  return {};
}

expected<void> reader::read_entry(std::string_view key, const toml::node& value,
                                  std::string_view section) {
  if (!other.key.empty() && key == other.key) return other.take(value);
  const auto is_section = [&](const described_option& option) { return option.section == key; };
  if (section.empty() && !key.empty() && std::ranges::any_of(options.options(), is_section)) {
    if (!value.is_table())
      return refuse(value, fmt::format("[{}] must be a table, not {}", key, type_name(value)));
    return read(*value.as_table(), key);
  }
  const auto* option = options.find(key);
  if (option == nullptr || !option->in_files || option->section != section) {
    if (only_known) return {};
    return refuse(value, unknown_key(key, section));
  }
  const auto texts = texts_of(value, option->value.form);
  if (!texts)
    return refuse(value, fmt::format("{} must be {}, not {}", key, type_name(option->value.form),
                                     type_name(value)));
  return options.store(*option, *texts, {option_origin::source::file, place(value)});
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

std::string with_blanks(std::string_view list) {
  std::string result;
  for (char letter : list)
    result += letter == ',' ? std::string{", "} : std::string{letter};
  return result;
}

expected<void> read_with(std::string_view toml, reader reader) {
  try {
    return reader.read(toml::parse(toml, reader.path), "");
  } catch (const toml::parse_error& problem) {
    return misuse(
      fmt::format("{}:{}: {}", reader.path, problem.source().begin.line, problem.description()));
  }
}

// Half of a file of `config_text` would leave the options of the other half at their defaults.
// Files of earlier versions promise no last line.
bool is_cut(std::string_view text) {
  if (!text.starts_with(program_line_begin)) return false;
  const auto first_line = text.substr(0, text.find('\n'));
  const auto promises_end = first_line.find(end_promise) != std::string_view::npos;
  return first_line.size() == text.size()
         || (promises_end && text.find(end_line, first_line.size()) == std::string_view::npos);
}

expected<std::string> content_of(const std::string& path, std::string_view option) {
  auto text = file_content(path, file_bytes_max);
  if (!text) return fail_at(option, text.error());
  if (is_cut(*text))
    return misuse(fmt::format("{}: the end of {} is missing, and with it the line '{}'; take a "
                              "whole copy of the file",
                              option, path, end_line));
  return text;
}

} // namespace

expected<void> read_config(std::string_view toml, const std::string& path, command_options& options,
                           const other_key& other) {
  return read_with(toml, {path, options, other});
}

expected<void> read_config_file(const std::string& path, std::string_view option,
                                command_options& options, const other_key& other) {
  return content_of(path, option).and_then([&](const std::string& text) {
    return read_config(text, path, options, other);
  });
}

expected<void> read_known_options(const std::string& path, std::string_view option,
                                  command_options& options) {
  return content_of(path, option).and_then([&](const std::string& text) {
    return read_with(text, {path, options, {}, true});
  });
}

std::string toml_text(const described_option& option) {
  auto texts = option.value.texts();
  switch (option.value.form) {
  case toml_form::whole_numbers:
    return fmt::format("[{}]", with_blanks(texts.empty() ? "" : texts.front()));
  case toml_form::texts:
  case toml_form::text_or_texts:
    std::ranges::transform(texts, texts.begin(), toml_quoted);
    return fmt::format("[{}]", fmt::join(texts, ", "));
  case toml_form::number:
    return texts.empty() ? std::string{} : texts.front();
  case toml_form::text:
  case toml_form::any:
    break;
  }
  return texts.empty() ? std::string{} : toml_quoted(texts.front());
}

std::string program_of_config(const std::filesystem::path& path) {
  std::ifstream file{path};
  std::string line;
  if (!std::getline(file, line) || !line.starts_with(program_line_begin)) return {};
  line.erase(0, program_line_begin.size());
  return line.substr(0, line.find('`'));
}

std::string config_text(const command_options& all, const option_origins& origins,
                        const config_style& style) {
  auto text = fmt::format("{0}{1}`; read back by: {1} --config FILE{2}{3}\n", program_line_begin,
                          style.program, end_promise, end_line);
  std::string tables; // They come last in TOML: all lines behind a heading belong to it.
  std::string_view section;
  for (const auto& option : all.options()) {
    if (!option.in_files || (style.is_left_out && style.is_left_out(option.key))) continue;
    const auto value = toml_text(option);
    auto line = fmt::format("# {}: {}\n", option.key, option.when_empty);
    const auto is_commented = std::ranges::count(style.commented, option.key) > 0;
    if (!value.empty())
      line = fmt::format("{:<46}  # {}\n",
                         fmt::format("{}{} = {}", is_commented ? "# " : "", option.key, value),
                         printable(describe(origin_of(origins, option.key))));
    if (!option.section.empty() && option.section != section)
      tables += fmt::format("\n[{}]\n", option.section);
    section = option.section;
    (option.section.empty() ? text : tables) += line;
  }
  return fmt::format("{}{}\n{}\n", text, tables, end_line);
}

} // namespace troupe
