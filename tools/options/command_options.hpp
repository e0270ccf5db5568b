// SPDX-License-Identifier: Apache-2.0
// The options of a command: described once, for its command line, its files and its help.
#pragma once

#include "tools/options/option_origin.hpp"
#include "tools/options/option_value.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe {

/// An option with a value, as files and dumps need it. CLI11 knows the rest.
struct described_option {
  std::string key;        ///< Its name in a file; with "--" before it, on the command line.
  std::string section;    ///< Its table in a file; empty: none.
  std::string when_empty; ///< Says what holds without a value.
  bool in_files = false;  ///< Whether a file may give it a value.
  option_value value;
  CLI::Option* cli_option = nullptr; ///< The option on the command line.
};

/// CLI11 takes the words of a command line apart and holds names, groups and descriptions. This
/// class adds how values are read and written, so that messages, files and help agree. An error
/// about an unknown option names the nearest one; an error about a value names its place.
class command_options {
public:
  /// @param introduction Begins the help. @param sample How a value is given, for a word that
  /// belongs to no option: "values follow their option, as in --steps 1000".
  /// @param footer Ends the help.
  explicit command_options(std::string introduction = {}, std::string sample = {},
                           std::string footer = {});
  ~command_options();
  command_options(const command_options&) = delete;
  command_options& operator=(const command_options&) = delete;

  /// Begins a group of options. @param heading In the help. @param in_files Whether files may give
  /// them values. @param section Their table in a file, which the help names; empty: none.
  void begin_group(const std::string& heading, bool in_files = false, std::string section = {});

  /// Describes an option. @param names As CLI11 takes them: "--batch", "-n,--workers"; without
  /// dashes, it is known by its place. @param argument Stands for its value in the help.
  /// @param when_empty Says in the help what holds without a value.
  void add(const std::string& names, const std::string& argument, const std::string& help,
           option_value value, std::string when_empty = {});

  /// Describes an option without a value. @param place Becomes true if it is given.
  void add_flag(const std::string& names, bool& place, const std::string& help);

  /// Leaves an option out of the help; the command still reads it.
  void hide(std::string_view key);

  /// Replaces the default that the help shows for an option.
  void show_default(std::string_view key, const std::string& text);

  /// Describes --help, as the last option. @param answer Becomes the help if it is asked for;
  /// outlives the reading.
  void add_help(std::string& answer);

  /// Takes the words of a command line apart, and stores no value yet. @pre There is --help.
  /// Errors: invalid_argument ("--steps needs a value").
  [[nodiscard]] expected<void> parse(int argument_count, const char* const* arguments);

  /// Stores the values that the command line gives; an empty argument without a name gives none.
  /// Errors: invalid_argument.
  [[nodiscard]] expected<void> store_given();

  /// `parse`, and then `store_given` unless the help was asked for.
  [[nodiscard]] expected<void> read(int argument_count, const char* const* arguments);

  /// Stores the value of one option and notes its origin. Errors: as of its `store`; the message
  /// begins with all names of the option, or with its place in a file and its name there.
  [[nodiscard]] expected<void> store(const described_option& option,
                                     const option_value::text_list& texts, option_origin origin);

  /// Takes the value of an option away, and its origin.
  void forget(std::string_view key);

  /// The options with values, in the order in which they were added.
  [[nodiscard]] const std::vector<described_option>& options() const { return options_; }

  /// The option of that name; null if there is none.
  [[nodiscard]] const described_option* find(std::string_view key) const;

  /// The last text that the command line gives for an option; empty: it gives none.
  [[nodiscard]] std::string given(std::string_view key) const;

  /// The origin of each value that was set; the others are not listed.
  [[nodiscard]] const option_origins& origins() const { return origins_; }

private:
  [[nodiscard]] std::string unexpected_argument(std::string argument) const;

  std::unique_ptr<CLI::App> app_;
  std::string sample_;
  std::string* answer_ = nullptr;
  std::vector<described_option> options_;
  option_origins origins_;
  bool in_files_ = true; ///< Whether files may give values to the options of the present group.
  std::string section_;
};

/// Gives an option its default value. @param options Has an `add_options` for its type.
template <class Options>
void reset(std::string_view key, Options& options) {
  Options defaults;
  command_options source;
  command_options target;
  add_options(source, defaults);
  add_options(target, options);
  static_cast<void>(target.find(key)->value.store(
    source.find(key)->value.texts())); // never refused: the text is the option's own default
}

} // namespace troupe
