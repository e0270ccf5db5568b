// SPDX-License-Identifier: Apache-2.0
// The options of `troupe train` as a table that the command line, the configuration file and its
// dump share.
#pragma once

#include "tools/options/train_options.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// Where an option's value lies, as a function so that it can be a member of a member.
template <class T>
using option_member = T& (*)(train_options&);

/// An option with a few values that have names.
struct option_choice {
  std::span<const std::string_view> names;
  size_t (*get)(const train_options&);
  void (*set)(train_options&, size_t);
};

/// The kinds of values that options have.
using option_target
  = std::variant<option_member<std::string>, option_member<uint64_t>,
                 option_member<std::optional<uint64_t>>, option_member<double>,
                 option_member<std::optional<double>>, option_member<int64_t>,
                 option_member<std::vector<int64_t>>, option_member<std::vector<slow_replica>>,
                 option_member<std::vector<optimizer_setting>>, option_choice>;

/// The numbers that an option accepts, ends included unless said otherwise.
struct option_range {
  double low = 0;
  double high = 0;
  bool above_low = false;  ///< `low` itself is not accepted.
  bool below_high = false; ///< `high` itself is not accepted.
};

/// One option.
struct train_option {
  std::string_view key;      ///< Its name in a file; with "--" before it, on the command line.
  std::string_view section;  ///< Its table in a file; empty: none.
  std::string_view group;    ///< Its heading in `--help`.
  std::string_view argument; ///< What stands for its value in `--help`.
  std::string_view help;
  option_target target;
  option_range range = {};          ///< For numbers.
  std::string_view when_empty = {}; ///< What holds when it has no value.
};

/// Whether an option says anything under the strategy that was chosen: where replicas meet, there
/// are no backups, no late gradients, and no replica can be done without; where they do not meet
/// over processes, these do not communicate.
[[nodiscard]] bool has_meaning(const train_option& option, strategy_kind strategy);

/// Gives an option the value that it has if it is not set.
void reset(const train_option& option, train_options& options);

/// All options, in the order of `--help`.
[[nodiscard]] std::span<const train_option> train_option_table();

/// The option of that name; null if there is none.
[[nodiscard]] const train_option* find_train_option(std::string_view key);

} // namespace troupe
