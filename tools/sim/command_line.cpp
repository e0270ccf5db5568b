// SPDX-License-Identifier: Apache-2.0
// Reading flags, scenario files and sweeps.
#include "tools/sim/command_line.hpp"

#include "tools/options/arguments.hpp"
#include "tools/options/nearest_name.hpp"
#include "tools/sim/help.hpp"
#include "tools/sim/network.hpp"
#include "tools/system/file_content.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <toml++/toml.h>

namespace troupe {

namespace {

constexpr uint64_t faults_bytes_max = uint64_t{1} << 20;
constexpr size_t sweep_rows_max = 10'000;

// All names that stand before a value in a file.
std::vector<std::string_view> key_names() {
  std::vector<std::string_view> names{"sweep", "json", "plots", "iterations", "fault"};
  for (const auto& option : sim_option_table())
    names.push_back(option.key);
  return names;
}

// Likewise, on the command line.
std::vector<std::string_view> sim_option_names() {
  auto names = key_names();
  std::erase(names, "fault");
  names.insert(names.end(), {"scenario", "help"});
  return names;
}

// ---- sweeps ----

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char letter : text) {
    depth += letter == '(' || letter == '{' ? 1 : 0;
    depth -= letter == ')' || letter == '}' ? 1 : 0;
    if (letter == separator && depth == 0)
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

// "90:100" or "10:100:10", or one value after the other: "50,dynamic".
expected<std::vector<std::string>> values_of(std::string_view text) {
  auto parts = split(text, ':');
  if (parts.size() == 1) return split(text, ',');
  auto low = number_of<uint64_t>(parts[0]);
  auto high = number_of<uint64_t>(parts[1]);
  auto step = parts.size() == 3 ? number_of<uint64_t>(parts[2]) : std::optional<uint64_t>{1};
  if (parts.size() > 3 || !low || !high || !step || *step == 0)
    return misuse(fmt::format("'{}' is no range, such as 90:100 or 10:100:10", text));
  if (*low > *high)
    return misuse(fmt::format("'{}' begins above its end; write {}:{}", text, *high, *low));
  if (auto count = (*high - *low) / *step; count >= sweep_rows_max)
    return misuse(fmt::format("'{}' has {} values; {} are the most: take a larger step", text,
                              count + 1, sweep_rows_max));
  std::vector<std::string> values;
  for (uint64_t value = *low; value <= *high; value += *step)
    values.push_back(std::to_string(value));
  return values;
}

// ---- files ----

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "on" : "off";
  return std::nullopt;
}

expected<void> take_sweep(const std::string& text, const std::string& name, sim_command& command) {
  auto sweep = parse_sweep(text);
  if (!sweep) return misuse(fmt::format("{}: {}", name, sweep.error().message));
  command.sweep = std::move(*sweep);
  return {};
}

expected<void> take_iterations(const std::string& text, const std::string& name,
                               sim_command& command) {
  auto curve = iteration_curve::parse(text);
  if (!curve) return misuse(fmt::format("{}: {}", name, curve.error().message));
  command.iterations = std::move(*curve);
  return {};
}

expected<void> take_faults(const toml::node& value, const std::string& path, sim_command& command) {
  const auto* list = value.as_array();
  if (list == nullptr || !list->is_homogeneous<toml::table>())
    return misuse(fmt::format("{}:{}: faults are tables, each under [[fault]]", path,
                              value.source().begin.line));
  for (const auto& one : *list) {
    auto planned = read_fault(*one.as_table(), path);
    if (!planned) return tl::unexpected<error>(planned.error());
    command.options.fault_list.push_back(std::move(*planned));
  }
  return {};
}

expected<void> take_entry(std::string_view key, const toml::node& value, const std::string& path,
                          sim_command& command) {
  auto place = fmt::format("{}:{}", path, value.source().begin.line);
  auto name = fmt::format("{}: {}", place, key);
  if (key == "fault") return take_faults(value, path, command);
  auto text = text_of(value);
  const auto* option = find_sim_option(key);
  if (option == nullptr && key != "sweep" && key != "json" && key != "plots" && key != "iterations")
    return misuse(fmt::format("{}: unknown key '{}'; the nearest known one is '{}'", place, key,
                              nearest_name(key, key_names())));
  if (!text) return misuse(fmt::format("{} must be a number or a text in quotes", name));
  if (key == "sweep") return take_sweep(*text, name, command);
  if (key == "iterations") return take_iterations(*text, name, command);
  if (option != nullptr) {
    command.given.emplace_back(key);
    return assign(*option, command.options, *text, name);
  }
  (key == "json" ? command.json : command.plots) = *text;
  return {};
}

// ---- flags ----

// The command line as it was written, before it is checked.
struct raw_sim_arguments {
  std::map<std::string_view, std::string> texts;
  std::string scenario;
  std::string sweep;
  std::string json;
  std::string plots;
  std::string iterations;
  bool help = false;
};

void add_options(CLI::App& app, raw_sim_arguments& raw) {
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("-h,--help", raw.help);
  app.add_option("--scenario", raw.scenario)->take_last();
  app.add_option("--sweep", raw.sweep)->take_last();
  app.add_option("--json", raw.json)->take_last();
  app.add_option("--plots", raw.plots)->take_last();
  app.add_option("--iterations", raw.iterations)->take_last();
  for (const auto& option : sim_option_table())
    app.add_option("--" + std::string{option.key}, raw.texts[option.key])->take_last();
}

expected<sim_command> settled(const CLI::App& app, const raw_sim_arguments& raw) {
  if (app.get_option("--sweep")->count() > 1)
    return misuse("--sweep is given twice, but one option is swept at a time; give all values of "
                  "one, and run again for the other");
  sim_command command;
  if (!raw.scenario.empty()) {
    auto text = file_content(raw.scenario, faults_bytes_max);
    if (!text) return fail(text.error().code, "--scenario: " + text.error().message);
    if (auto done = read_scenario(*text, raw.scenario, command); !done)
      return tl::unexpected<error>(done.error());
  }
  for (const auto& option : sim_option_table()) {
    auto flag = "--" + std::string{option.key};
    if (app.get_option(flag)->count() == 0) continue;
    command.given.emplace_back(option.key);
    if (auto done = assign(option, command.options, raw.texts.at(option.key), flag); !done)
      return tl::unexpected<error>(done.error());
  }
  if (!raw.json.empty()) command.json = raw.json;
  if (!raw.plots.empty()) command.plots = raw.plots;
  if (!raw.iterations.empty()) {
    if (auto done = take_iterations(raw.iterations, "--iterations", command); !done)
      return tl::unexpected<error>(done.error());
  }
  if (!raw.sweep.empty()) {
    if (auto done = take_sweep(raw.sweep, "--sweep", command); !done)
      return tl::unexpected<error>(done.error());
  }
  return command;
}

} // namespace

std::vector<sim_options> sim_command::rows() const {
  if (sweep.option == nullptr) return {options};
  std::vector<sim_options> rows;
  for (const auto& value : sweep.values) {
    rows.push_back(options);
    static_cast<void>(assign(*sweep.option, rows.back(), value, "")); // was checked
  }
  return rows;
}

expected<sim_sweep> parse_sweep(std::string_view text) {
  auto equals = text.find('=');
  if (equals == std::string_view::npos)
    return misuse(fmt::format("'{}' is no NAME=VALUES, such as aggregate=90:100", text));
  sim_sweep sweep;
  auto key = text.substr(0, equals);
  sweep.option = find_sim_option(key);
  if (sweep.option == nullptr) {
    std::vector<std::string_view> keys;
    for (const auto& option : sim_option_table())
      keys.push_back(option.key);
    return misuse(
      fmt::format("no option '{}'; the nearest known one is '{}'", key, nearest_name(key, keys)));
  }
  auto values = text.substr(equals + 1);
  auto listed = values_of(values);
  if (!listed) return tl::unexpected<error>(listed.error());
  sweep.values = std::move(*listed);
  if (sweep.values.size() > sweep_rows_max)
    return misuse(fmt::format("{} values; {} are the most", sweep.values.size(), sweep_rows_max));
  sim_options scratch;
  for (const auto& value : sweep.values)
    if (auto done = assign(*sweep.option, scratch, value, std::string{key}); !done)
      return tl::unexpected<error>(done.error());
  return sweep;
}

expected<void> read_scenario(std::string_view toml, const std::string& path, sim_command& command) {
  try {
    const toml::table table = toml::parse(toml, path);
    for (const auto& [key, value] : table)
      if (auto done = take_entry(key.str(), value, path, command); !done) return done;
    return {};
  } catch (const toml::parse_error& problem) {
    return misuse(
      fmt::format("{}:{}: {}", path, problem.source().begin.line, problem.description()));
  }
}

expected<sim_command> parse_sim_options(int argument_count, const char* const* arguments) {
  raw_sim_arguments raw;
  CLI::App app;
  add_options(app, raw);
  if (auto taken = take_apart(app, argument_count, arguments); !taken)
    return tl::unexpected(taken.error());
  if (raw.help) {
    sim_command command;
    command.answer = sim_help();
    return command;
  }
  if (const auto extra = app.remaining(); !extra.empty())
    return misuse(unexpected_argument(extra.front(), "--steps 1000", sim_option_names()));
  return settled(app, raw);
}

} // namespace troupe
