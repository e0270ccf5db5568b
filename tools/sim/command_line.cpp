// SPDX-License-Identifier: Apache-2.0
// Reads options, scenario files and sweeps.
#include "tools/sim/command_line.hpp"

#include "messages/mapped.hpp"
#include "messages/text.hpp"
#include "simulation/distributions/distribution_family.hpp"
#include "simulation/distributions/distribution_preset.hpp"
#include "tools/options/config_file.hpp"
#include "tools/options/help.hpp"
#include "tools/options/nearest_name.hpp"
#include "tools/sim/network.hpp"

#include <optional>

namespace troupe {

namespace {

constexpr size_t sweep_rows_max = 10'000;

// ---- sweeps ----

// The parts between separators outside of parentheses, without the blanks around them.
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
  for (auto& part : parts)
    part = std::string{trimmed(part)};
  return parts;
}

// The values of a range, "90:100" or "10:100:10", or of a list: "50,dynamic".
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
  auto steps = (*high - *low) / *step; // one less than values
  if (steps >= sweep_rows_max)
    return misuse(fmt::format("'{}' has {} values; {} are the most: take a larger step", text,
                              static_cast<double>(steps) + 1, sweep_rows_max));
  std::vector<std::string> values;
  for (uint64_t i = 0; i <= steps; ++i)
    values.push_back(std::to_string(*low + i * *step));
  return values;
}

// Reads "aggregate=90:100", "replicas=10:100:10" or "policy=cancel,latest_token".
expected<sim_sweep> parse_sweep(std::string_view text) {
  auto equals = text.find('=');
  if (equals == std::string_view::npos)
    return misuse(fmt::format("'{}' is no NAME=VALUES, such as aggregate=90:100", text));
  sim_sweep sweep{.key = std::string{trimmed(text.substr(0, equals))}};
  sim_options scratch;
  command_options all;
  add_options(all, scratch);
  const auto* swept_option = all.find(sweep.key);
  if (swept_option == nullptr) {
    auto keys = mapped<std::string_view>(all.options(), &described_option::key);
    return misuse(fmt::format("no option '{}'; the nearest known one is '{}'", sweep.key,
                              nearest_name(sweep.key, keys)));
  }
  auto values = values_of(text.substr(equals + 1));
  if (!values) return tl::unexpected<error>(values.error());
  sweep.values = std::move(*values);
  if (sweep.values.size() > sweep_rows_max)
    return misuse(fmt::format("{} values; {} are the most", sweep.values.size(), sweep_rows_max));
  for (const auto& value : sweep.values)
    if (auto done = swept_option->value.store({value}); !done)
      return misuse(sweep.key + done.error().message);
  return sweep;
}

expected<void> store_sweeps(const option_value::text_list& texts, sim_command& command) {
  command.sweep = {};
  command.across = {};
  if (texts.size() > 2)
    return misuse(
      fmt::format(" is given {} times, but two options are the most that are swept at a "
                  "time",
                  texts.size()));
  for (const auto& text : texts) {
    auto sweep = parse_sweep(text);
    if (!sweep) return misuse(": " + sweep.error().message);
    (command.sweep.key.empty() ? command.sweep : command.across) = std::move(*sweep);
  }
  if (command.across.key.empty()) return {};
  if (command.across.key == command.sweep.key)
    return misuse(fmt::format(" is given twice with {}; give all its values at once, or another "
                              "option",
                              command.sweep.key));
  if (auto count = command.sweep.values.size() * command.across.values.size();
      count > sweep_rows_max)
    return misuse(fmt::format(": {} pairs of values; {} are the most", count, sweep_rows_max));
  return {};
}

option_value sweep_value(sim_command& command) {
  return unwritten(
    {[&command](const option_value::text_list& texts) { return store_sweeps(texts, command); },
     {},
     toml_form::text_or_texts});
}

// Each row once for each value of the sweep.
std::vector<sim_options> swept(const std::vector<sim_options>& rows, const sim_sweep& sweep) {
  if (sweep.key.empty()) return rows;
  sim_options swept_row;
  command_options all;
  add_options(all, swept_row);
  const auto* option = all.find(sweep.key);
  std::vector<sim_options> result;
  for (const auto& row : rows)
    for (const auto& value : sweep.values) {
      swept_row = row;
      static_cast<void>(option->value.store({value})); // was checked
      result.push_back(swept_row);
    }
  return result;
}

expected<void> take_faults(const toml::node& value, const std::string& path, sim_command& command) {
  const auto* list = value.as_array();
  if (list == nullptr || !list->is_homogeneous<toml::table>())
    return misuse(fmt::format("{}:{}: faults are tables, each under [[fault]]", path,
                              value.source().begin.line));
  for (const auto& table : *list) {
    auto planned = read_fault(*table.as_table(), path);
    if (!planned) return tl::unexpected<error>(planned.error());
    command.options.fault_list.push_back(std::move(*planned));
  }
  return {};
}

// The distributions and presets by name.
std::string distributions_text() {
  std::string text = "\nDistributions (seconds), and presets:\n";
  for (const auto& family : distribution_families())
    text += fmt::format("  {}\n", signature(family));
  text += "  a + b   a * b   mixture(0.9: a, 0.1: b)   trace(FILE)\n"
          "  persistent(a)   common(a)   correlated(rho, a)   on_off(enter, leave, factor)\n"
          "  pause(every, length)   slow(3/50, 2.4)   slow({7, 12}, 2.4)\n";
  for (const auto& preset : distribution_presets())
    text += help_entry(preset.name, preset.expression);
  return text;
}

} // namespace

const char* const sim_introduction
  = "Simulates training in virtual time, by the actors of a real job or by their\n"
    "decisions alone: what do stragglers cost, and what do backups save?\n"
    "\n"
    "Usage: troupe sim [OPTIONS]\n"
    "       troupe sim advise [OPTIONS]          how many backups, in words\n"
    "       troupe sim fit TRACE [OPTIONS]       which distribution times have\n"
    "       troupe sim goodput [OPTIONS]         what failures leave of a week\n"
    "       troupe sim replay RUN_DIR [OPTIONS]  a run of troupe train, with a change\n"
    "\n"
    "Every option can also stand in a TOML file, without the dashes (--scenario).\n";

std::string sim_exit_codes_text(bool may_stall) {
  return fmt::format("Exit codes:\n"
                     "  0      finished\n"
                     "  1      the report or another output could not be written\n"
                     "  2      an option, a file or a folder is invalid; nothing was done\n"
                     "{}",
                     may_stall ? "  5      stalled: a simulated job did not make all its steps\n"
                               : "");
}

std::vector<sim_options> sim_command::rows() const {
  return swept(swept({options}, sweep), across);
}

void add_options(command_options& all, sim_command& command) {
  add_options(all, command.options);
  all.begin_group("Report", true);
  all.add(
    "--sweep", "NAME=VALUES",
    "a row for each value of an option: aggregate=90:100, replicas=10:100:10, "
    "policy=cancel,latest_token; all rows use the same draws and are compared in pairs. "
    "Given twice (in a file, as a list of two), there is a row for each pair of values of the two "
    "options",
    sweep_value(command));
  all.add("--json", "FILE", "write the report to a file; to standard output for -",
          text_or_none_value(command.json));
  all.add("--plots", "DIR",
          "plot the results as SVG files (by gnuplot, if it is installed), and write their numbers "
          "beside them as CSV files",
          text_or_none_value(command.plots));
  all.add("--ledger", "FILE",
          "write a line for each gradient, as ledger.csv of troupe train has it",
          text_or_none_value(command.ledger));
  all.add("--steps-csv", "FILE",
          "write a line for each step, as metrics.csv of troupe train has it",
          text_or_none_value(command.steps_csv));
  all.add("--iterations", "CURVE",
          "steps that the model needs if each averages N gradients, for the time to converge: "
          "N^-0.8, 9000 + 5e5/N, or measured: '50: 13000, 90: 9500'",
          parsed_value(command.iterations, iteration_curve::parse), "1/N");
}

other_key faults_key(const std::string& path, sim_command& command) {
  return {"fault",
          [path, &command](const toml::node& value) { return take_faults(value, path, command); }};
}

expected<sim_command> parse_sim_options(int argument_count, const char* const* arguments,
                                        const std::string& introduction,
                                        const std::function<void(command_options&)>& adapt_help) {
  sim_command command;
  command_options all{introduction, "values follow their option, as in --steps 1000",
                      distributions_text() + "\n" + sim_exit_codes_text(true)};
  add_options(all, command);
  if (adapt_help) adapt_help(all);
  std::string scenario;
  all.begin_group("Files and help"); // those that files may not hold
  all.add("--scenario", "FILE", "TOML file with options", text_value(scenario));
  all.add_help(command.answer);
  if (auto done = all.parse(argument_count, arguments); !done) return tl::unexpected(done.error());
  if (!command.answer.empty()) return command;
  if (scenario = all.given("scenario"); !scenario.empty()) {
    auto done = read_config_file(scenario, "--scenario", all, faults_key(scenario, command));
    if (!done) return tl::unexpected<error>(done.error());
  }
  if (auto done = all.store_given(); !done) return tl::unexpected<error>(done.error());
  command.origins = all.origins();
  return command;
}

} // namespace troupe
