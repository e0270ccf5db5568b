// SPDX-License-Identifier: Apache-2.0
// Adding options to CLI11, and putting its help and errors into our words.
#include "tools/options/command_options.hpp"

#include "messages/errors/assert.hpp"
#include "tools/options/help.hpp"
#include "tools/options/nearest_name.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/ranges.h>
#include <span>
#include <string_view>

namespace troupe {

namespace {

// "-n,--workers"
std::string all_names(const CLI::Option& option) {
  return option.get_name(false, true);
}

std::string option_help(const CLI::Option& option) {
  auto names = all_names(option);
  if (auto comma = names.find(','); comma != std::string::npos) names.insert(comma + 1, " ");
  if (!option.get_option_text().empty()) names += ' ' + option.get_option_text();
  const auto standard = option.get_default_str();
  return help_entry(names, standard.empty()
                             ? option.get_description()
                             : fmt::format("{} [{}]", option.get_description(), standard));
}

// The option that is given as "--name=", as by a variable of the shell that is not set; null: none.
// CLI11 would take the next argument for its value.
const CLI::Option* option_without_value(const CLI::App& app, std::span<const char* const> words) {
  for (std::string_view word : words) {
    if (word == "--") break;
    if (!word.starts_with("--") || word.find('=') != word.size() - 1) continue;
    if (const auto* option = app.get_option_no_throw(std::string{word.substr(0, word.size() - 1)}))
      return option;
  }
  return nullptr;
}

bool lacks_value(const described_option& option) {
  return option.cli_option->count() > 0 && option.cli_option->results().back().empty()
         && !option.value.may_be_empty;
}

std::string command_help(const CLI::App& app) {
  auto text = app.get_description();
  for (const auto& group : app.get_groups()) {
    if (group.empty()) continue; // hidden options
    text += fmt::format("\n{}:\n", group);
    for (const auto* option : app.get_options())
      if (option->get_group() == group && option->nonpositional()) text += option_help(*option);
  }
  return text + app.get_footer();
}

} // namespace

command_options::command_options(std::string introduction, std::string sample, std::string footer)
  : app_(std::make_unique<CLI::App>(std::move(introduction))), sample_(std::move(sample)) {
  app_->set_help_flag();
  app_->allow_extras();
  app_->footer(std::move(footer));
  app_->formatter_fn(
    [](const CLI::App* app, const std::string&, CLI::AppFormatMode) { return command_help(*app); });
}

command_options::~command_options() = default;

void command_options::begin_group(const std::string& heading, bool in_files, std::string section) {
  app_->option_defaults()->group(
    section.empty() ? heading : fmt::format("{} (in a file: below [{}])", heading, section));
  in_files_ = in_files;
  section_ = std::move(section);
}

void command_options::add(const std::string& names, const std::string& argument,
                          const std::string& help, option_value value, std::string when_empty) {
  auto* option = app_->add_option(names, CLI::callback_t{}, help);
  const auto standard = fmt::format("{}", fmt::join(value.texts(), " "));
  option->take_all()->option_text(argument)->default_str(standard.empty() ? when_empty : standard);
  const auto& long_names = option->get_lnames();
  options_.push_back({long_names.empty() ? names : long_names.front(), section_,
                      std::move(when_empty), in_files_, std::move(value), option});
}

void command_options::add_flag(const std::string& names, bool& place, const std::string& help) {
  app_->add_flag(names, place, help);
}

void command_options::hide(std::string_view key) {
  find(key)->cli_option->group("");
}

void command_options::show_default(std::string_view key, const std::string& text) {
  find(key)->cli_option->default_str(text);
}

void command_options::add_help(std::string& answer) {
  answer_ = &answer;
  app_->set_help_flag("-h,--help", "this text");
}

expected<void> command_options::parse(int argument_count, const char* const* arguments) {
  TROUPE_ASSERT(answer_ != nullptr);
  const std::span words{arguments, static_cast<size_t>(argument_count)};
  if (const auto* option = option_without_value(*app_, words))
    return misuse(all_names(*option) + " needs a value");
  try {
    app_->parse(argument_count, arguments);
  } catch (const CLI::CallForHelp&) {
    *answer_ = app_->help();
    return {};
  } catch (const CLI::ArgumentMismatch& problem) {
    const std::string message = problem.what();
    const auto name = message.substr(0, message.find(':'));
    const auto* option = app_->get_option_no_throw(name);
    return misuse((option == nullptr ? name : all_names(*option)) + " needs a value");
  } catch (const CLI::ParseError& problem) {
    return misuse(problem.what());
  }
  for (const auto& option : options_)
    if (option.cli_option->nonpositional() && lacks_value(option))
      return misuse(all_names(*option.cli_option) + " needs a value");
  if (const auto extra = app_->remaining(); !extra.empty())
    return misuse(unexpected_argument(extra.front()));
  return {};
}

expected<void> command_options::store_given() {
  for (const auto& option : options_) {
    if (option.cli_option->count() == 0 || lacks_value(option)) continue;
    auto stored
      = store(option, option.cli_option->results(), {option_origin::source::command_line, ""});
    if (!stored) return stored;
  }
  return {};
}

expected<void> command_options::read(int argument_count, const char* const* arguments) {
  auto parsed = parse(argument_count, arguments);
  return parsed && answer_->empty() ? store_given() : parsed;
}

expected<void> command_options::store(const described_option& option,
                                      const option_value::text_list& texts, option_origin origin) {
  const bool is_of_file = origin.from == option_origin::source::file;
  origins_.insert_or_assign(option.key, std::move(origin));
  return option.value.store(texts).map_error([&](const error& reason) {
    const auto name = is_of_file ? spelling(origins_, option.key) : all_names(*option.cli_option);
    return error{reason.code, name + reason.message};
  });
}

void command_options::forget(std::string_view key) {
  origins_.erase(std::string{key});
  static_cast<void>(find(key)->value.store({})); // no value is never refused
}

const described_option* command_options::find(std::string_view key) const {
  const auto found = std::ranges::find(options_, key, &described_option::key);
  return found == options_.end() ? nullptr : &*found;
}

std::string command_options::given(std::string_view key) const {
  const auto* option = find(key);
  return option->cli_option->count() == 0 ? std::string{} : option->cli_option->results().back();
}

std::string command_options::unexpected_argument(std::string argument) const {
  if (!argument.starts_with('-'))
    return fmt::format("unexpected argument '{}': {}", argument, sample_);
  argument.resize(std::min(argument.find('='), argument.size()));
  std::vector<std::string_view> names;
  for (const auto* option : app_->get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  const auto dashes = std::min(argument.find_first_not_of('-'), argument.size());
  return fmt::format("unknown option '{}'; the nearest known one is '--{}'", argument,
                     nearest_name(std::string_view{argument}.substr(dashes), names));
}

} // namespace troupe
